/** Whom erasing and exporting are about: a person, by their number, or a message. */
import { createMentionTest } from "./mention.ts";
import type { Act } from "./operations.ts";
import type { LaneRecord } from "./record.ts";

export type Subject = Extract<Act, { kind: "erase" }>["subject"];

export interface SubjectTest {
  /** @param bodies - all that is kept of the lane's events; asked for only if nothing else tells */
  isAbout(lane: Pick<LaneRecord, "key" | "peer">, bodies: () => readonly Uint8Array[]): boolean;
  isNamedIn(raw: Uint8Array): boolean;
}

export function createSubjectTest(subject: Subject): SubjectTest {
  const byPeer = "peer" in subject;
  const isNamedIn = createMentionTest(byPeer ? subject.peer : subject.messageId);
  return {
    isNamedIn,
    isAbout({ key, peer }, bodies) {
      if (byPeer ? peer === subject.peer : key.messageId === subject.messageId) return true;
      // Its events are of types that are not known: only the bodies can tell.
      const isSilent = key.tag === "unlaned" || (byPeer && peer === null);
      return isSilent && bodies().some(isNamedIn);
    },
  };
}
