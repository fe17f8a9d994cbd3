/** A party of Coterie. */

export { Party, type PartyOptions } from "./party.ts";
export type { Outcome, Table } from "./session/contract.ts";
export { readCsv } from "./table/csv.ts";
export { Problem } from "./wire/problems.ts";
