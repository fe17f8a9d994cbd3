/** Reads JSON objects, and refuses texts that readers understand differently. */

import { refuse } from "./problems.ts";

export type JsonObject = { readonly [name: string]: unknown };

const MAX_DEPTH = 64;
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]/gs;

const VALUE = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/gs;
const LONG_NUMBER = /^-?\d{16,}$/;
const MARK = "\ud800"; // half a letter, which no text of the wire holds

/** Any JSON; whole numbers of 16 digits and more are bigints. */
export function readJson(text: string): unknown {
  const marked = text.replace(VALUE, (token) =>
    LONG_NUMBER.test(token) ? `"${MARK}${token}"` : token,
  );
  return JSON.parse(marked, (_, item: unknown) => {
    if (item === Infinity || item === -Infinity) throw new RangeError();
    const isLong = typeof item === "string" && item.startsWith(MARK);
    return isLong ? BigInt(item.slice(MARK.length)) : item;
  });
}

/** One JSON object; throws `malformed`, also for a repeated name. */
export function readObject(text: string): JsonObject {
  checkNames(text);
  let value: unknown;
  try {
    value = readJson(text);
  } catch {
    refuse("malformed", "This is not JSON.");
  }
  if (!value || typeof value !== "object" || Array.isArray(value)) {
    refuse("malformed", "Expected a JSON object.");
  }
  return value as JsonObject;
}

/** Refuses objects with a repeated name, and those that are nested too deeply. */
function checkNames(text: string): void {
  const open: (Set<string> | null)[] = [];
  let last = "";
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === "{" || token === "[") open.push(token === "{" ? new Set() : null);
    else if (token === "}" || token === "]") open.pop();
    else if (token === ":") addName(open.at(-1), last);
    if (open.length > MAX_DEPTH)
      refuse("malformed", "Objects and lists are nested too deeply.");
    last = token;
  }
}

function addName(names: Set<string> | null | undefined, token: string): void {
  let name = token;
  try {
    name = JSON.parse(token) as string;
  } catch {
    return; // the parser refuses the whole text
  }
  if (names?.has(name)) refuse("malformed", "A name appears twice in one object.");
  names?.add(name);
}
