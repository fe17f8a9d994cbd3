/** Dates in texts, whichever way they are written. */

import { digitsOf } from "../identifiers.ts";

const BETWEEN = "[-./ ]?";
const [TWO, FOUR] = ["(\\p{Nd}{1,2})", "(\\p{Nd}{4})"];
const REST = "(?:[t ][^\\n]*)?";
const YEAR_FIRST = new RegExp(`^${FOUR}${BETWEEN}${TWO}${BETWEEN}${TWO}${REST}$`, "u");
const DAY_FIRST = new RegExp(`^${TWO}${BETWEEN}${TWO}${BETWEEN}${FOUR}${REST}$`, "u");
const [EARLIEST, LATEST] = [1800, 2199];

type Day = readonly [year: number, month: number, day: number];

const FORMS: Readonly<Record<string, (day: Day) => string>> = {
  date: ([year, month, day]) => `${year}-${two(month)}-${two(day)}`,
  year: ([year]) => `${year}`,
  month: ([, month]) => two(month),
  day: ([, , day]) => two(day),
  "year-month": ([year, month]) => `${year}-${two(month)}`,
  "month-day": ([, month, day]) => `${two(month)}-${two(day)}`,
};

/** The part of a date that a step keeps; "" without a date, unset for other steps. */
export function formOfDate(text: string, step: string): string | undefined {
  if (!Object.hasOwn(FORMS, step)) return undefined;
  const day = readDate(text);
  return day ? FORMS[step]!(day) : "";
}

/**
 * The date that a text is: year, month, day, else day, month, year, else month, day, year.
 */
function readDate(text: string): Day | undefined {
  const [year, month, day] = numbersIn(YEAR_FIRST.exec(text));
  const [first, second, last] = numbersIn(DAY_FIRST.exec(text));
  return (
    dayAt(year!, month!, day!) ??
    dayAt(last!, second!, first!) ??
    dayAt(last!, first!, second!)
  );
}

function numbersIn(found: RegExpExecArray | null): readonly number[] {
  return found ? found.slice(1).map((digits) => Number(digitsOf(digits))) : [];
}

/** A day of the calendar. */
function dayAt(year: number, month: number, day: number): Day | undefined {
  const date = new Date(Date.UTC(year, month - 1, day));
  const isDay = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return isDay && year >= EARLIEST && year <= LATEST ? [year, month, day] : undefined;
}

function two(number: number): string {
  return String(number).padStart(2, "0");
}
