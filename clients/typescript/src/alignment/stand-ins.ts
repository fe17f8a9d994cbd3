/** Cells that stand for no value: words such as `unknown`, dates such as 1900-01-01. */

import { partsOf } from "./identifiers.ts";
import { formOfDate } from "./match-keys/dates.ts";

const WORDS = new Set(
  (
    "k.a.|ka|k.a|keine angabe|unbekannt|unbek.|fehlend|fehlt|nicht bekannt|entfällt|-" +
    "|--|.|..|?|??|n/a|na|<na>|n.a.|n.a|nd|n.d.|none|null|nil|nan|nat|unk|unknown" +
    "|not known|missing|not available|not done|inconnu|inconnue|non connu|manquant|nc" +
    "|desconocido|no consta|sin dato|sconosciuto|non noto|onbekend|niet bekend|#n/a" +
    "|#null!|#wert!|#value!|#n/a!|#div/0!|#ref!|#name?|#num!|#novalue"
  ).split("|"),
);

const meansNothing = (text: string) =>
  WORDS.has(text.toLowerCase().trim().replace(/\s+/gu, " "));

/** The rows whose id, or a part of it, is a word for no value, or zeros alone. */
export function unnamedRows(ids: readonly string[]): ReadonlySet<number> {
  const countsFrom = (zeros: string) =>
    ids.some(
      (id) =>
        id.length === zeros.length && id !== zeros && id.startsWith(zeros.slice(2)),
    );
  const isUnnamed = (id: string) =>
    /^00+$/u.test(id) ? !countsFrom(id) : partsOf(id).some(meansNothing);
  return new Set([...ids.keys()].filter((row) => isUnnamed(ids[row]!)));
}

/** The cells of a column, with "" for each cell that stands for no value. */
export function withoutStandIns(texts: readonly string[]): readonly string[] {
  const frequent = frequentStandIns(texts);
  return texts.map((text) => (frequent.has(text) || meansNothing(text) ? "" : text));
}

/** Up to three cells that are far more frequent than all others, by the rule of spec/. */
function frequentStandIns(texts: readonly string[]): ReadonlySet<string> {
  const counts = new Map<string, number>();
  for (const text of texts) if (text) counts.set(text, (counts.get(text) ?? 0) + 1);
  const ordered = [...counts].sort(([, one], [, other]) => other - one);
  const rows = (cells: readonly [string, number][]) =>
    cells.reduce((sum, [, count]) => sum + count, 0);
  for (let n = Math.min(3, ordered.length - 1); n > 0; n -= 1) {
    const [frequent, others] = [ordered.slice(0, n), ordered.slice(n)];
    const isApart = frequent[n - 1]![1] >= Math.max(4, 3 * others[0]![1] + 1);
    if (!isApart || rows(frequent) > rows(others)) continue;
    const areAlone =
      others.filter(([, count]) => count === 1).length >= 0.9 * rows(others);
    const isNoName = ([text]: [string, number]) =>
      !!formOfDate(text, "date") || (areAlone && /[\p{Nd}@]/u.test(text));
    if (frequent.every(isNoName)) return new Set(frequent.map(([text]) => text));
  }
  return new Set();
}
