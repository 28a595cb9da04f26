// Passkeys: a form with data-passkey asks the browser for one before it is sent, and sends what came of it.
// "create" makes a passkey, "get" uses one. The options stand in the page (data-options: an id) or are fetched (data-from).

async function options(form) {
  if (form.dataset.options) return JSON.parse(document.getElementById(form.dataset.options).textContent);
  const answer = await fetch(form.dataset.from, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error("the server did not answer");
  return (await answer.json()).request_options;
}

async function credential(form) {
  const { publicKey } = await options(form);
  if (form.dataset.passkey === "create") {
    return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(publicKey) });
  }
  return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(publicKey) });
}

function tell(form, text) {
  const place = form.querySelector("[data-passkey-told]");
  place.textContent = text;
  place.hidden = false;
}

function why(error) {
  if (!window.isSecureContext || /^[\d.]+$|:/.test(location.hostname)) {
    return "Passkeys need a host name and HTTPS: open this site by its name.";
  }
  if (!window.PublicKeyCredential?.parseCreationOptionsFromJSON) return "This browser does not support passkeys.";
  if (error.name === "NotAllowedError") return "The browser returned no passkey. You cancelled, it took too long, or you have no passkey for this site.";
  if (error.name === "InvalidStateError") return "This device already has a passkey for your login.";
  return `The browser says: ${error.message}`;
}

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-passkey]");
  if (!form || form.elements.credential.value) return;
  event.preventDefault();
  try {
    form.elements.credential.value = JSON.stringify(await credential(form));
  } catch (error) {
    tell(form, why(error));
    return;
  }
  form.submit();
});
