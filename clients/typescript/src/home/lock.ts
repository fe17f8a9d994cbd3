/** Keeps a second process from running the same party. */

import fs from "node:fs";
import { Problem } from "../wire/problems.ts";

/** Takes a lock file; the one of a process that no longer runs does not count. */
export function takeLock(file: string): () => void {
  for (;;) {
    try {
      fs.writeFileSync(file, String(process.pid), { flag: "wx", mode: 0o600 });
      return () => fs.rmSync(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    if (isHeld(file)) {
      throw new Problem("not-ready", "Another process is running this party.");
    }
    fs.rmSync(file, { force: true });
  }
}

function isHeld(file: string): boolean {
  const holder = Number(fs.readFileSync(file, "utf8"));
  if (!Number.isSafeInteger(holder) || holder < 1) return false;
  try {
    process.kill(holder, 0);
    return holder !== process.pid;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
