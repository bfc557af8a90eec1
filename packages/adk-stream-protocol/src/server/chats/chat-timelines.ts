import type { TimelinePage } from '../../agent/timeline/build-timeline.ts'
import { buildTimeline } from '../../agent/timeline/build-timeline.ts'
import type { AuditRecord } from '../../approvals/audit-entry.ts'
import type { Decider } from '../../approvals/deciders.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { Timeline } from '../../protocol/timeline.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'
import type { TurnRegistry } from '../../turns/turn-registry.ts'
import type { LazyBackend } from './backend.ts'
import { toApprovalChat } from './backend.ts'
import type { ModelCalls } from './model-calls.ts'
import type { TurnsElsewhere } from './turns/turns-elsewhere.ts'

export interface ChatTimelinesOptions {
  readonly backend: LazyBackend
  readonly turns: TurnRegistry
  readonly elsewhere: Pick<TurnsElsewhere, 'messageOf'>
  readonly exposeState: (key: string) => boolean
  readonly modelCalls?: Pick<ModelCalls, 'annotate'> | undefined
}

export interface TimelineRequest extends Partial<TimelinePage> {
  /** The person who reads. Undefined for the application. */
  readonly reader?: Decider
  /** Whether the reader sees the texts of messages and the session state. */
  readonly showText: boolean
}

const DEFAULT_TURNS = 20
/** Maximum number of approvals that a chat can wait for. The limit `maxPendingPerChat` is lower by default. */
const MAX_OPEN = 100

/** Reads timelines of chats from what is stored, and from the turns that run on any server. */
export class ChatTimelines {
  readonly #options: ChatTimelinesOptions

  constructor(options: ChatTimelinesOptions) {
    this.#options = options
  }

  /** Returns a page of the timeline of a chat. A chat that does not exist has no entries. */
  async read(ref: ChatRef, request: TimelineRequest): Promise<Timeline> {
    const { backend, turns, elsewhere, exposeState } = this.#options
    const opened = await backend.get()
    const { sessions, ledger, store, browserTools } = opened
    const chat = toApprovalChat(opened, ref)
    const { chatId } = chat
    const running = turns.running(ref)?.messageId ?? (await elsewhere.messageOf(ref))
    const session = await sessions.get(chat)
    const audit: AuditRecord[] = []
    for await (const record of ledger.audit({ chat })) audit.push(record)
    const open = await ledger.list({
      chat,
      states: ['requested', 'approved', 'executing'],
      limit: MAX_OPEN,
    })
    const calls = (await store.browserCalls.list?.({ chat, limit: MAX_OPEN })) ?? []
    const { reader, showText, before, limit = DEFAULT_TURNS } = request
    const timeline = buildTimeline(
      {
        chatId,
        now: await store.approvals.now(),
        events: session?.events ?? [],
        audit,
        open,
        running,
        browserCalls: new Set(calls.map(({ toolCallId }) => toolCallId)),
        isBrowserTool: (toolName) => browserTools.has(toolName),
        showText,
        reader,
      },
      { limit, ...(before !== undefined && { before }) },
    )
    if (!timeline)
      throw new ProtocolError('bad-request', { message: 'There is no page before this message.' })
    const state = Object.entries(session?.state ?? {}).filter(([key]) => exposeState(key))
    const { modelCalls } = this.#options
    const entries =
      modelCalls && showText ? modelCalls.annotate(ref, timeline.entries) : timeline.entries
    return { ...timeline, entries, ...(showText && { state: Object.fromEntries(state) }) }
  }
}
