/** Somebody who looks at the live list, without a browser: asks what the page asks, when the page would. */

export interface Viewer {
  /** How often the list was read. */
  readonly lists: number;
  stop(): void;
}

const HEADERS = { "x-oncehook-inspector": "1", "content-type": "application/json" };

/** Holds the stream of the inspector at `origin`, and reads the newest events whenever something has changed. */
export function view(origin: string): Viewer {
  const gone = new AbortController();
  const viewer = { lists: 0, stop: () => gone.abort() };
  const api = `${origin}/inspector/api`;
  const read = async () => {
    const list = { method: "POST", headers: HEADERS, body: '{"limit":50}', signal: gone.signal };
    const answer = await fetch(`${api}/events`, list);
    if (!answer.ok) throw new Error(`The list was answered ${answer.status}.`);
    await answer.text();
    viewer.lists += 1;
  };
  const look = async () => {
    const stream = await fetch(`${api}/stream`, { signal: gone.signal });
    const decoder = new TextDecoder();
    let changed = "";
    for await (const chunk of stream.body ?? []) {
      const [, told] = /"changed":(\d+)/.exec(decoder.decode(chunk, { stream: true })) ?? [];
      if (told === undefined || told === changed) continue;
      changed = told;
      await read();
    }
  };
  look().catch((error: unknown) => {
    if (!gone.signal.aborted) throw error;
  });
  return viewer;
}
