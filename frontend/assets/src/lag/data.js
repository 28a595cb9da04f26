// The server's answer as points in the order of time. Times are milliseconds since 1970.
import { isEnded, sayEnded } from "../session.js";

const LONGEST_GAP = 3; // stretches: points further apart are not joined

export async function fetchLag(url, { span, partition }, signal) {
  const answer = await fetch(`${url}?${new URLSearchParams({ window: span, partition })}`, { signal, headers: { Accept: "application/json" }, credentials: "same-origin" });
  if (isEnded(answer)) {
    sayEnded();
    throw new Error("You are logged out.");
  }
  if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
  const body = await answer.json();
  const marks = body.marks.map(([at, kind]) => ({ at, kind }));
  return { ...body, marks, points: body.points.map(([at, lag, held, rows, redelivered]) => ({ at, lag, held, rows, redelivered })) };
}

// A line's points, with an empty one wherever nobody looked.
export function line(points, resolution, value) {
  return points.flatMap((point, index) => {
    const gap = index > 0 && point.at - points[index - 1].at > LONGEST_GAP * resolution;
    const here = [point.at, value(point) ?? "-"];
    return gap ? [[point.at - resolution, "-"], here] : [here];
  });
}

export function nearest(points, at) {
  let best = -1;
  points.forEach((point, index) => {
    if (best < 0 || Math.abs(point.at - at) < Math.abs(points[best].at - at)) best = index;
  });
  return best;
}
