/** Writes JSON whose numbers keep their sign of zero, and 64 bits. */

export function writeJson(value: unknown): string {
  if (typeof value === "bigint") return value.toString();
  if (Object.is(value, -0)) return "-0.0";
  if (Array.isArray(value)) return `[${value.map(writeJson).join()}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const fields = Object.entries(value).map(
    ([name, item]) => `${JSON.stringify(name)}:${writeJson(item)}`,
  );
  return `{${fields.join()}}`;
}
