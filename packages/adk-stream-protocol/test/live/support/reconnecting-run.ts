import {
  AsyncQueue,
  InMemoryRunner,
  LiveRequestQueue,
  LlmAgent,
  setLogger,
  type BaseTool,
  type Event,
  type RunConfig,
} from '@google/adk'
import { Modality, type Content } from '@google/genai'
import type { Emulator, LiveSession } from 'gemini-emulator'

import { EmulatedGemini } from '../../../../../test/support/emulated-gemini.ts'
import {
  ReconnectingLiveModel,
  type ReconnectingLiveModelOptions,
} from '../../../src/modules/live/gemini/reconnecting-model.ts'
import type { LiveStatus } from '../../../src/modules/live/gemini/message-receiver.ts'

// ADK logs every failure that a test provokes.
setLogger(null)

export const NATIVE_AUDIO = 'gemini-2.5-flash-native-audio-preview-12-2025'
export const FLASH_LIVE = 'gemini-3.1-flash-live-preview'

/** The events that the hooks received. */
interface Reported {
  readonly statuses: LiveStatus[]
  readonly cancelled: string[]
  readonly errors: unknown[]
  interruptions: number
}

export interface ReconnectingRunOptions extends Partial<ReconnectingLiveModelOptions> {
  readonly model?: string
  readonly apiKey?: string
  readonly tools?: BaseTool[]
  readonly runConfig?: Partial<RunConfig>
  /** The contents of the session before the run. */
  readonly history?: readonly Content[]
  /** Whether the test reads the events itself. */
  readonly unread?: boolean
}

/** One `runLive` of ADK's own runner over a reconnecting model; disposing it closes the queue and waits for the end. */
export async function runReconnecting(
  { baseUrl }: Pick<Emulator, 'baseUrl'>,
  options: ReconnectingRunOptions = {},
) {
  const { model = NATIVE_AUDIO, apiKey, tools = [], runConfig, history = [], ...rest } = options
  const reported: Reported = { statuses: [], cancelled: [], errors: [], interruptions: 0 }
  const reconnecting = new ReconnectingLiveModel(new EmulatedGemini(baseUrl, model, apiKey), {
    retryDelayMs: 1,
    ...rest,
    hooks: { ...listen(reported), ...rest.hooks },
  })
  const agent = new LlmAgent({ name: 'assistant', model: reconnecting, tools })
  const runner = new InMemoryRunner({ agent, appName: 'lab' })
  const { sessionService } = runner
  const session = await sessionService.createSession({ appName: 'lab', userId: 'u' })
  for (const content of history)
    await sessionService.appendEvent({ session, event: toEvent(content) })
  const queue = new LiveRequestQueue()
  const events = runner.runLive({
    userId: 'u',
    sessionId: session.id,
    liveRequestQueue: queue,
    runConfig: { responseModalities: [Modality.TEXT], ...runConfig },
  })
  const inbox = new AsyncQueue<Event>()
  const ended = options.unread ? Promise.resolve() : pump(events, inbox)
  const arriving = inbox[Symbol.asyncIterator]()
  return {
    queue,
    events,
    reported,
    /** The error that ended the run, or undefined. */
    ended,
    say: (text: string) => queue.sendContent({ role: 'user', parts: [{ text }] }),
    answer: (id: string, name: string, response: Record<string, unknown>) =>
      queue.sendContent({ role: 'user', parts: [{ functionResponse: { id, name, response } }] }),
    /** Reads events up to and including the first match. */
    until: (matches: (event: Event) => unknown) => readUntil(arriving, matches),
    async stored() {
      const key = { appName: 'lab', userId: 'u', sessionId: session.id }
      return (await sessionService.getSession(key))?.events ?? []
    },
    async [Symbol.asyncDispose]() {
      queue.close()
      await ended
    },
  }
}

/** Reads a run without delay, as a bridge does. */
async function pump(events: AsyncGenerator<Event>, inbox: AsyncQueue<Event>): Promise<unknown> {
  try {
    for await (const event of events) inbox.push(event)
    inbox.close()
    return undefined
  } catch (error) {
    inbox.fail(error)
    return error
  }
}

function listen(reported: Reported): ReconnectingLiveModelOptions['hooks'] {
  return {
    onConnecting: () => undefined,
    onConnected: () => undefined,
    onStatus: (status) => void reported.statuses.push(status),
    onCancelled: (ids) => void reported.cancelled.push(...ids),
    onError: (error) => void reported.errors.push(error),
    onOutput: () => undefined,
    onMark: () => undefined,
    onInterrupted: () => void (reported.interruptions += 1),
    onReplyLost: () => undefined,
    onDropped: (error) => void reported.errors.push(error),
    onHandle: () => undefined,
  }
}

async function readUntil(
  events: AsyncIterator<Event>,
  matches: (event: Event) => unknown,
): Promise<Event[]> {
  const read: Event[] = []
  for (;;) {
    const next = await events.next()
    if (next.done) throw new Error(`runLive ended; read ${JSON.stringify(read)}`)
    read.push(next.value)
    if (matches(next.value)) return read
  }
}

function toEvent(content: Content): Event {
  return {
    id: crypto.randomUUID(),
    invocationId: 'before',
    author: content.role === 'model' ? 'assistant' : 'user',
    timestamp: Date.now(),
    content,
    actions: {
      stateDelta: {},
      artifactDelta: {},
      requestedAuthConfigs: {},
      requestedToolConfirmations: {},
    },
  }
}

export const isTurnComplete = (event: Event) => event.turnComplete
export const isCall = (event: Event) => event.content?.parts?.some((part) => part.functionCall)

/** The model's text in complete events. */
export function textOf(events: readonly Event[]): string {
  return events
    .filter((event) => event.partial === false)
    .flatMap((event) => event.content?.parts ?? [])
    .map((part) => part.text ?? '')
    .join('')
}

/** The texts in the model's history. */
export function memoryOf({ history }: Pick<LiveSession, 'history'>): string[] {
  return history.flatMap(({ role, parts }) =>
    (parts ?? []).map((part) => `${role}: ${part.text ?? JSON.stringify(part)}`),
  )
}

/** The number of sockets that the emulator holds open. */
export function openSockets({ live }: Emulator): number {
  return live.sessions.filter(({ closed }) => closed === undefined).length
}

export async function allClosed({ live }: Emulator): Promise<void> {
  await Promise.all(live.sessions.map(({ ended }) => ended))
}
