/** JSON in its canonical form: RFC 8785, over texts in NFC. */

export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [name: string]: Json };

/** The canonical text; throws RangeError for what RFC 8785 does not write. */
export function canonicalJson(value: Json): string {
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new RangeError("JSON has no such number.");
  }
  if (typeof value === "string") return JSON.stringify(wellFormed(value));
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (isList(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const fields = Object.entries(value).map(
    ([name, item]) => [wellFormed(name), item] as const,
  );
  // < compares UTF-16 code units, as RFC 8785 orders names
  fields.sort(([a], [b]) => (a < b ? -1 : Number(a > b)));
  const written = fields.map(
    ([name, item]) => `${JSON.stringify(name)}:${canonicalJson(item)}`,
  );
  return `{${written.join(",")}}`;
}

function isList(value: object): value is readonly Json[] {
  return Array.isArray(value);
}

function wellFormed(text: string): string {
  if (/\p{Surrogate}/u.test(text)) throw new RangeError("A text has half a letter.");
  return text.normalize("NFC");
}
