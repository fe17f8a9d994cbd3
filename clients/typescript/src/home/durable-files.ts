/** Files that survive a crash and that no other user can read. */

import fs from "node:fs";
import path from "node:path";

const OWNER_ONLY = 0o600;
const FOLDER_OWNER_ONLY = 0o700;

export function makeFolder(folder: string): void {
  fs.mkdirSync(folder, { recursive: true, mode: FOLDER_OWNER_ONLY });
}

/** Replaces a file at once; durable when it returns. */
export function writeDurably(file: string, content: Uint8Array | string): void {
  const beside = `${file}.new`;
  const handle = fs.openSync(beside, "w", OWNER_ONLY);
  try {
    fs.fchmodSync(handle, OWNER_ONLY);
    fs.writeFileSync(handle, content);
    fs.fsyncSync(handle);
  } finally {
    fs.closeSync(handle);
  }
  fs.renameSync(beside, file);
  syncFolder(path.dirname(file));
}

/** The bytes of a file, or undefined if it does not exist. */
export function readIfThere(file: string): Uint8Array | undefined {
  try {
    return new Uint8Array(fs.readFileSync(file));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function syncFolder(folder: string): void {
  const handle = fs.openSync(folder, "r");
  try {
    fs.fsyncSync(handle);
  } finally {
    fs.closeSync(handle);
  }
}
