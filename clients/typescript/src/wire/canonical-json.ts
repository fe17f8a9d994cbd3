/** JSON in its canonical form, RFC 8785. */

export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [name: string]: Json };

/** The canonical text of terms and rosters, in NFC. */
export function canonicalJson(value: Json): string {
  return writeJson(value, (text) => text.normalize("NFC"));
}

/** JSON as RFC 8785 writes it; throws RangeError for values that it excludes. */
export function writeJson(value: Json, spell = (text: string) => text): string {
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new RangeError("JSON cannot hold this number.");
  }
  if (typeof value === "string") return JSON.stringify(spell(wellFormed(value)));
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (isList(value))
    return `[${value.map((item) => writeJson(item, spell)).join(",")}]`;
  const fields = Object.entries(value).map(
    ([name, item]) => [spell(wellFormed(name)), item] as const,
  );
  // < compares UTF-16 code units, as RFC 8785 orders names
  fields.sort(([a], [b]) => (a < b ? -1 : Number(a > b)));
  const written = fields.map(
    ([name, item]) => `${JSON.stringify(name)}:${writeJson(item, spell)}`,
  );
  return `{${written.join(",")}}`;
}

function isList(value: object): value is readonly Json[] {
  return Array.isArray(value);
}

function wellFormed(text: string): string {
  if (/\p{Surrogate}/u.test(text))
    throw new RangeError("A string has an unpaired surrogate.");
  return text;
}
