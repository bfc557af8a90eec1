/** A page that is measured, and how the reader has set it up. */
export interface Subject {
  readonly name: string
  readonly url: string
  readonly settings: Readonly<Record<string, string>>
}

export interface Addresses {
  readonly demo: string
  readonly peer: string
}

/** The peer, and the demo's page in each of the agent's modes, with the inspector closed and open. */
export function listSubjects({ demo, peer }: Addresses): Subject[] {
  const ours = (['sse', 'live'] as const).flatMap((mode) =>
    (['closed', 'open'] as const).map((inspector) => ({
      name: `page, ${mode}, inspector ${inspector}`,
      url: demo,
      settings: { mode, inspector },
    })),
  )
  return [{ name: 'peer: bare `useChat`', url: peer, settings: {} }, ...ours]
}
