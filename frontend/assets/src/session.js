// A session that has ended, in another tab or by itself: the page says so, stays as it is, and asks for nothing more.
const ENDED = "headgate:logged-out";

export function sayEnded() {
  document.dispatchEvent(new CustomEvent(ENDED));
}

export function onEnded(listener) {
  document.addEventListener(ENDED, listener);
}

// An answer to a script: nobody is logged in any more.
export function isEnded(answer) {
  return answer.redirected || answer.status === 401;
}

onEnded(() => {
  const notice = document.getElementById("logged-out");
  if (!notice) return;
  const here = window.location.pathname + window.location.search;
  notice.querySelector("a").href = `${notice.dataset.login}?${new URLSearchParams({ next: here })}`;
  notice.hidden = false;
});
