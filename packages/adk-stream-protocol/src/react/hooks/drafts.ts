/** The newest drafts are kept. Older ones are removed. */
const MAX_DRAFTS = 30
/** A longer draft is not stored. */
const MAX_LENGTH = 50_000
const PREFIX = 'adk-draft:'

interface StoredDraft {
  readonly text: string
  /** When it was stored, in ms since 1970. */
  readonly at: number
}

/** Returns the stored draft, or an empty text. */
export function readDraft(key: string): string {
  return attempt(() => parse(localStorage.getItem(PREFIX + key))?.text) ?? ''
}

/** Stores a draft in this browser. An empty text removes it. A draft that cannot be stored is lost when the page is closed. */
export function storeDraft(key: string, text: string): void {
  attempt(() => {
    if (text.trim() === '' || text.length > MAX_LENGTH) return localStorage.removeItem(PREFIX + key)
    const isNew = localStorage.getItem(PREFIX + key) === null
    localStorage.setItem(
      PREFIX + key,
      JSON.stringify({ text, at: Date.now() } satisfies StoredDraft),
    )
    if (isNew) removeOldest()
  })
}

function removeOldest(): void {
  const drafts = Object.keys(localStorage)
    .filter((key) => key.startsWith(PREFIX))
    .map((key) => ({ key, at: parse(localStorage.getItem(key))?.at ?? 0 }))
    .toSorted((one, other) => other.at - one.at)
  for (const { key } of drafts.slice(MAX_DRAFTS)) localStorage.removeItem(key)
}

function parse(stored: string | null): StoredDraft | undefined {
  if (stored === null) return undefined
  const value: unknown = JSON.parse(stored)
  const isDraft =
    typeof value === 'object' && value !== null && 'text' in value && typeof value.text === 'string'
  if (!isDraft) return undefined
  return { text: value.text as string, at: 'at' in value ? Number(value.at) : 0 }
}

/** The storage may be full or blocked, or may contain anything. */
function attempt<Value>(work: () => Value): Value | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
