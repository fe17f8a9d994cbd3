/** Ids of rows, brought into the form in which parties compare them. */

import { caseFold } from "./case-folding.ts";

const SPACE =
  "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const INNER_SPACE = new RegExp(`(?<=[^${SPACE}])[${SPACE}]+(?=[^${SPACE}])`, "gu");
const OUTER_SPACE = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, "gu");
const NO_WORD = /[^\p{L}\p{M}\p{N}]/gu;
const DIGIT = /^\p{Nd}$/u;
const PADDING = "zero-pad:";

/** An id as parties compare it: the JSON list of its parts, each in its normal form. */
export function normalisedId(name: string, steps: readonly string[]): string {
  return JSON.stringify(partsOf(name).map((part) => normalForm(part, steps)));
}

/** A text after these steps, in the order of the table of spec/. */
export function normalForm(text: string, steps: readonly string[]): string {
  const has = (step: string) => steps.includes(step);
  const form = has("nfkc") ? "NFKC" : "NFC";
  const compose = (part: string) =>
    has("nfc") || has("nfkc") ? part.normalize(form) : part;
  let found = compose(text);
  if (has("casefold")) found = compose(caseFold(found)); // folding can undo a composition
  if (has("spaces")) found = found.replace(INNER_SPACE, " ");
  if (has("strip")) found = found.replace(OUTER_SPACE, "");
  if (has("no-punctuation")) found = found.replace(NO_WORD, "");
  if (has("digits")) found = digitsOf(found);
  if (has("strip-zeros")) found = found.replace(/^0+(?=.)/su, "");
  const padding = steps.find((step) => step.startsWith(PADDING));
  return padding && found
    ? padded(found, Number(padding.slice(PADDING.length)))
    : found;
}

/** The parts of an id of several columns; one where it has no more. */
export function partsOf(name: string): readonly string[] {
  if (!name.startsWith('["')) return [name];
  try {
    const found: unknown = JSON.parse(name);
    const isList = Array.isArray(found) && found.length > 1;
    const areTexts = isList && found.every((part) => typeof part === "string");
    return areTexts ? (found as string[]) : [name];
  } catch {
    return [name];
  }
}

/** The decimal digits of a text, written 0 to 9. */
export function digitsOf(text: string): string {
  return [...text]
    .filter((sign) => DIGIT.test(sign))
    .map((sign) => {
      // digits stand in runs of ten, from zero on
      const code = sign.codePointAt(0)!;
      let zero = code;
      while (DIGIT.test(String.fromCodePoint(zero - 1))) zero -= 1;
      return String((code - zero) % 10);
    })
    .join("");
}

function padded(text: string, length: number): string {
  return "0".repeat(Math.max(0, length - [...text].length)) + text;
}
