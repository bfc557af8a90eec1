/** What a remote agent asks a person for. */
export type RemoteRequestKind = 'answer' | 'approval' | 'signIn'

const TITLES: Readonly<Record<RemoteRequestKind, string>> = {
  answer: 'asks',
  approval: 'asks for approval',
  signIn: 'asks you to sign in',
}

/** Returns the title of what a remote agent asks. */
export function toRemoteTitle(kind: RemoteRequestKind, agent: string): string {
  return `The remote agent ${agent} ${TITLES[kind]}`
}

/** Reads a title of `toRemoteTitle`, so that a page can show it in its own language. Returns undefined for any other title. */
export function readRemoteTitle(
  title: string,
): { readonly kind: RemoteRequestKind; readonly agent: string } | undefined {
  const [, agent = '', verb] = /^The remote agent (\S+) (asks.*)$/.exec(title) ?? []
  const kind = (['answer', 'approval', 'signIn'] as const).find((each) => TITLES[each] === verb)
  return kind && { kind, agent }
}
