/** Steps of a match key: each is a function from text to text. */

import { normalForm } from "../identifiers.ts";
import { formOfDate } from "./dates.ts";

const STEP = new RegExp(
  "^(?:no-punctuation|digits|strip-zeros|zero-pad:[1-9][0-9]?|first:[1-9][0-9]?" +
    "|date|year|month|day|year-month|month-day|sorted-names)$",
);
const FIRST = "first:";
const NAME = /[\p{L}\p{Nl}\p{No}]+/gu; // a run of letters

export function isStep(step: string): boolean {
  return STEP.test(step);
}

/** A text after a step; empty where nothing is left of it. */
export function takeStep(text: string, step: string): string {
  if (step.startsWith(FIRST)) {
    return [...text].slice(0, Number(step.slice(FIRST.length))).join("");
  }
  if (step === "sorted-names") return sortedNames(text);
  return formOfDate(text, step) ?? normalForm(text, [step]);
}

/** The names in a text, by code points. */
function sortedNames(text: string): string {
  const names = (text.match(NAME) ?? []).map((name) => Buffer.from(name));
  return names.sort(Buffer.compare).join(" ");
}
