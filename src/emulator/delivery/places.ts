/** A bounded number of places per key; who finds none free waits in turn. */

export interface Places {
  /** Resolves with a place of this key, to be given back once; or with null when sent away before one was free. */
  take(key: string): Promise<Place | null>;
  /** Sends away all who wait now. */
  sendAway(): void;
}

export interface Place {
  giveBack(): void;
}

/** One key's: forgotten when the last place is given back. */
interface Line {
  taken: number;
  /** In the order in which they came. */
  readonly waiting: ((place: Place | null) => void)[];
}

export function createPlaces(perKey: number): Places {
  const lines = new Map<string, Line>();

  async function take(key: string): Promise<Place | null> {
    const line = lines.get(key) ?? { taken: 0, waiting: [] };
    lines.set(key, line);
    if (line.taken === perKey) return new Promise((resolve) => line.waiting.push(resolve));
    line.taken += 1;
    const place = { giveBack: () => giveBack(key, line, place) };
    return place;
  }

  /** A place goes straight to who waits first, so that nobody who comes in between is ahead of it. */
  function giveBack(key: string, line: Line, place: Place): void {
    const next = line.waiting.shift();
    if (next !== undefined) return next(place);
    line.taken -= 1;
    if (line.taken === 0) lines.delete(key);
  }

  function sendAway(): void {
    for (const { waiting } of lines.values()) for (const leave of waiting.splice(0)) leave(null);
  }

  return { take, sendAway };
}
