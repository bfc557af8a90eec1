import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import {
  GoogleGenAI,
  Modality,
  type LiveConnectConfig,
  type LiveServerMessage,
  type Session,
} from '@google/genai'
import { WebSocket } from 'ws'

import { defer } from '../src/deferred.ts'
import { attachLive, type LiveDesk } from '../src/live/attach-live.ts'
import type { LiveOptions } from '../src/live/live-options.ts'
import { synthesizeTone } from '../src/live/tone.ts'
import type { Delivery } from '../src/live/plan-turn.ts'
import type { Closing } from '../src/live/connection.ts'
import type { Act, Mind, Prompt } from '../src/mind.ts'
import { createWorld, type World, type WorldOptions } from '../src/world.ts'

export const NATIVE_AUDIO = 'gemini-2.5-flash-native-audio-preview-12-2025'
export const FLASH_LIVE = 'gemini-3.1-flash-live-preview'
export const PATH = '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent'

export interface Lab extends AsyncDisposable {
  readonly baseUrl: string
  readonly desk: LiveDesk
  readonly world: World
  /** Every prompt the mind was asked. */
  readonly prompts: readonly Prompt[]
}

export interface LabOptions extends LiveOptions {
  readonly mind?: Mind
  readonly world?: Partial<WorldOptions>
}

/** The Live side alone, on a port of its own. */
export async function startLab(options: LabOptions = {}): Promise<Lab> {
  const { mind = mindOf({}), world: worldOptions, ...live } = options
  const prompts: Prompt[] = []
  const world = createWorld({
    models: [/^gemini-/],
    paceMs: 0,
    log: () => undefined,
    synthesize: synthesizeTone,
    ...worldOptions,
    mind: (prompt) => {
      prompts.push(prompt)
      return mind(prompt)
    },
  })
  const server = createServer()
  const desk = attachLive(server, world, live)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  // A server that listens on TCP has such an address.
  const { port } = server.address() as AddressInfo
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    desk,
    world,
    prompts,
    async [Symbol.asyncDispose]() {
      await desk.close()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A mind that looks its answer up: by the last text, or by the names of the functions that answered. */
export function mindOf(answers: Readonly<Record<string, readonly Act[]>>): Mind {
  return (prompt) => {
    const heard = lastInput(prompt)
    return answers[heard] ?? [{ type: 'say', text: `You said: ${heard}` }]
  }
}

function lastInput({ contents }: Prompt): string {
  const parts = contents.at(-1)?.parts ?? []
  const names = parts.flatMap((part) => part.functionResponse?.name ?? [])
  if (names.length > 0) return `(${names.join(', ')} answered)`
  return parts.map((part) => part.text ?? '').join('')
}

export const say = (text: string): Act => ({ type: 'say', text })
export const wait = (gate: string): Act => ({ type: 'wait', gate })
export const call = (name: string, more: Partial<Extract<Act, { type: 'call' }>> = {}): Act => ({
  type: 'call',
  name,
  args: {},
  id: name,
  ...more,
})

/** How a plain session is answered. */
export const DELIVERY: Delivery = {
  model: NATIVE_AUDIO,
  modality: 'TEXT',
  transcribe: false,
  includeThoughts: false,
  paceMs: 0,
  realTime: false,
  isBlocking: () => true,
  newId: () => 'id',
  speak: () => [],
}

export interface ClientOptions {
  readonly model?: string
  readonly apiKey?: string
  readonly apiVersion?: string
  readonly config?: LiveConnectConfig
}

type Matches = (message: LiveServerMessage) => unknown

export interface Client extends AsyncDisposable {
  readonly session: Session
  readonly closed: Promise<Closing>
  /** The messages not yet looked at, up to and with the first that matches. */
  until(matches: Matches): Promise<LiveServerMessage[]>
  say(text: string): void
}

/** The real Gen AI SDK, connected; it answers in TEXT unless told otherwise. */
export async function connect(
  lab: Pick<Lab, 'baseUrl'>,
  options: ClientOptions = {},
): Promise<Client> {
  const inbox = createInbox()
  const session = await Promise.race([
    openSession(lab, options, inbox),
    inbox.closed.then((closing) => {
      throw new Error(`closed with ${told(closing)}`)
    }),
  ])
  return {
    session,
    closed: inbox.closed,
    until: inbox.until,
    say: (text) => session.sendClientContent({ turns: text }),
    async [Symbol.asyncDispose]() {
      session.close()
      await inbox.closed
    },
  }
}

/** How the server turns a client down that only connects and sends its setup. */
export async function refusal(lab: Pick<Lab, 'baseUrl'>, options: ClientOptions = {}) {
  const inbox = createInbox()
  // The SDK never settles this promise when the server closes; the close event is what counts.
  void openSession(lab, options, inbox)
  return inbox.closed
}

function openSession(
  lab: Pick<Lab, 'baseUrl'>,
  options: ClientOptions,
  inbox: ReturnType<typeof createInbox>,
) {
  const { model = NATIVE_AUDIO, apiKey = 'key', apiVersion = 'v1beta', config } = options
  const ai = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: lab.baseUrl, apiVersion } })
  return ai.live.connect({
    model,
    config: { responseModalities: [Modality.TEXT], ...config },
    callbacks: { onmessage: inbox.push, onclose: inbox.close, onerror: () => undefined },
  })
}

function createInbox() {
  const unread: LiveServerMessage[] = []
  const closing = defer<Closing>()
  let ended: Closing | undefined
  let news = defer<void>()
  const tell = () => {
    news.resolve()
    news = defer<void>()
  }
  return {
    closed: closing.promise,
    push(this: void, message: LiveServerMessage) {
      unread.push(message)
      tell()
    },
    close(this: void, { code, reason }: Closing) {
      ended = { code, reason }
      closing.resolve(ended)
      tell()
    },
    async until(this: void, matches: Matches) {
      const read: LiveServerMessage[] = []
      for (;;) {
        const message = unread.shift()
        if (message) {
          read.push(message)
          if (matches(message)) return read
        } else if (ended) {
          throw new Error(`closed with ${told(ended)}; read ${JSON.stringify(read)}`)
        } else {
          await news.promise
        }
      }
    },
  }
}

export const turnComplete: Matches = (message) => message.serverContent?.turnComplete
export const toolCall: Matches = (message) => message.toolCall
export const interrupted: Matches = (message) => message.serverContent?.interrupted

/** Everything the model wrote in these messages. */
export function textOf(messages: readonly LiveServerMessage[]): string {
  return messages
    .flatMap((message) => message.serverContent?.modelTurn?.parts ?? [])
    .map((part) => (part.thought ? '' : (part.text ?? '')))
    .join('')
}

/** What kind of messages these are, in short. */
export function kinds(messages: readonly LiveServerMessage[]): string[] {
  return messages.flatMap((message) =>
    Object.entries(message).flatMap(([kind, value]) =>
      kind === 'serverContent' ? Object.keys(value as object) : [kind],
    ),
  )
}

/** How a connection ended, on one line. */
export const told = ({ code, reason }: Closing) => `${code} ${reason}`

/** A bare WebSocket, for what the SDK would never send. */
export async function connectRaw(lab: Lab, path = `${PATH}?key=key`) {
  const socket = new WebSocket(lab.baseUrl.replace('http', 'ws') + path)
  const closed = new Promise<Closing>((resolve) => {
    socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }))
  })
  const refused = new Promise<string>((resolve) => {
    socket.on('error', (error) => resolve(error.message))
  })
  await Promise.race([new Promise<void>((resolve) => socket.on('open', resolve)), refused])
  const send = (frame: unknown) =>
    socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  return { socket, closed, refused, send }
}

export const TEXT_SETUP = {
  setup: { model: `models/${NATIVE_AUDIO}`, generationConfig: { responseModalities: ['TEXT'] } },
}

const RATE = 16_000

/** A voice, as far as the detector is concerned. */
export function voice(ms: number): Int16Array {
  return new Int16Array((RATE * ms) / 1000).map((_, index) => Math.sin(index / 5) * 8000)
}

export function silence(ms: number): Int16Array {
  return new Int16Array((RATE * ms) / 1000)
}

export function audio(...stretches: Int16Array[]) {
  const data = Buffer.concat(stretches.map((samples) => Buffer.from(samples.buffer)))
  return { mimeType: `audio/pcm;rate=${RATE}`, data: data.toString('base64') }
}
