/** Finds what a person names by its id. */
import type { EventRecord, LaneId, QuarantineRecord } from "../../inbox/record.ts";
import { findQuarantined } from "../../receiver/find-quarantined.ts";
import type { Inbox } from "../../receiver/open-inbox.ts";
import { CommandError, NEGATIVE } from "../failure.ts";

/** @throws CommandError when there is none */
export async function eventOf(inbox: Inbox, id: number): Promise<EventRecord> {
  const { items } = await inbox.find({ after: id + 1, limit: 1 });
  // What comes first behind the next id is the one itself, if it is there.
  const event = items.find((row) => row.id === id);
  if (event === undefined) throw new CommandError(`There is no event ${id}.`, NEGATIVE);
  return event;
}

/** @throws CommandError when there is none */
export async function quarantinedOf(inbox: Inbox, id: number): Promise<QuarantineRecord> {
  const row = await findQuarantined(inbox, id);
  if (row === null) throw new CommandError(`There is no quarantined body ${id}.`, NEGATIVE);
  return row;
}

/** The lanes of a message: more than one only if API clients have the same message ids. @throws CommandError when there is none */
export async function lanesOf(inbox: Inbox, message: string, client: string | undefined): Promise<readonly LaneId[]> {
  const filter = { messageId: message, ...(client !== undefined && { apiClientId: client }) };
  const { items } = await inbox.find({ ...filter, limit: 1_000 });
  const lanes = new Set(items.map(({ laneId }) => laneId));
  if (lanes.size === 0) throw new CommandError("The inbox knows no such message, or no longer.", NEGATIVE);
  return [...lanes].sort((a, b) => a - b);
}
