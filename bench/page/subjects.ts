/** A page that is measured, with its stored settings. */
export interface Subject {
  readonly name: string
  readonly url: string
  readonly settings: Readonly<Record<string, string>>
}

export interface Addresses {
  readonly demo: string
  readonly peer: string
}

/** Returns the peer, and the demo's page in each mode of the agent, with the inspector closed and open. */
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
