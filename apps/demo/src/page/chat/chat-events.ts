import { z } from 'zod'

/** What the server tells those who watch a chat. */
const ChatEvent = z.discriminatedUnion('type', [
  /** An answer begins or goes on. */
  z.object({ type: z.literal('turn'), messageId: z.string() }),
  z.object({ type: z.literal('approval'), approvalId: z.string(), state: z.string() }),
])
type ChatEvent = z.infer<typeof ChatEvent>

interface Listeners {
  readonly onEvent: (event: ChatEvent) => void
  /** The connection was lost and is back: events may have been missed. */
  readonly onReturn: () => void
}

/** Watches a chat until the signal says so. */
export function watchChat(id: string, { onEvent, onReturn }: Listeners, signal: AbortSignal): void {
  const source = new EventSource(`/chats/${encodeURIComponent(id)}/events`)
  let lost = false
  source.addEventListener('message', ({ data }: MessageEvent<string>) => {
    const event = parse(data)
    if (event) onEvent(event)
  })
  source.addEventListener('error', () => {
    lost = true
  })
  source.addEventListener('open', () => {
    if (lost) onReturn()
    lost = false
  })
  signal.addEventListener('abort', () => source.close(), { once: true })
}

function parse(data: string): ChatEvent | undefined {
  try {
    return ChatEvent.safeParse(JSON.parse(data)).data
  } catch {
    // Not for this page: what it cannot read, it does not need.
    return undefined
  }
}
