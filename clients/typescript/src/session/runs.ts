/** Stages of the runs of a session, one run for each number of clusters. */

import type { Stage } from "./contract.ts";

/** The stages of each run, one run after the other; those of one run are as they are. */
export function inRuns(runs: readonly (readonly Stage[])[]): readonly Stage[] {
  if (runs.length === 1) return runs[0]!;
  return runs.flatMap((stages, run) =>
    stages.map((stage) => ({ ...stage, name: `${stage.name}-${run + 1}`, run })),
  );
}

/** The name of a stage in the tables of messages, which are the same for all runs. */
export function nameOfAnyRun({ name, run }: Stage): string {
  return run === undefined ? name : name.slice(0, name.lastIndexOf("-"));
}

/** The last stage of each run; of stages of no run the last. */
export function lastStages(stages: readonly Stage[]): readonly Stage[] {
  const last = stages.at(-1)!;
  const name = nameOfAnyRun(last);
  return last.run === undefined
    ? [last]
    : stages.filter((stage) => nameOfAnyRun(stage) === name);
}
