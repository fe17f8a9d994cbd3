/** A digest of a table, by which a party goes on with the rows that joined. */

import type { Table } from "../session/contract.ts";
import { concat, hexDigest, lengthPrefixed, utf8 } from "../wire/bytes.ts";

export function digestTable(table: Table): string {
  const numbers = table.rows.map(
    (row) => new Uint8Array(row.buffer, row.byteOffset, row.byteLength),
  );
  const names = utf8(JSON.stringify([table.columns, table.ids ?? null]));
  return hexDigest(
    concat([lengthPrefixed(names), ...numbers.map((row) => lengthPrefixed(row))]),
  );
}
