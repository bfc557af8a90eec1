import { createServer } from 'node:http'

import {
  GoogleGenAI,
  Modality,
  type LiveConnectConfig,
  type LiveServerMessage,
  type Session,
} from '@google/genai'
import { WebSocket } from 'ws'

import { listen } from '../../../../test/support/listen.ts'
import { defer } from '../../src/deferred.ts'
import { createCore, type CoreOptions, type EmulatorCore } from '../../src/emulator-core.ts'
import { attachLive, type LiveControls } from '../../src/live/attach-live.ts'
import { synthesizeTone } from '../../src/live/audio.ts'
import type { CloseInfo } from '../../src/live/connection.ts'
import type { LiveOptions } from '../../src/live/live-options.ts'
import type { TurnSettings } from '../../src/live/plan-turn.ts'
import type { Action, Prompt, Responder } from '../../src/responders/responder.ts'

export const NATIVE_AUDIO = 'gemini-2.5-flash-native-audio-preview-12-2025'
export const FLASH_LIVE = 'gemini-3.1-flash-live-preview'
export const PATH = '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent'

export interface LiveServer extends AsyncDisposable {
  readonly baseUrl: string
  readonly live: LiveControls
  readonly core: EmulatorCore
  /** All prompts so far. */
  readonly prompts: readonly Prompt[]
}

export interface LiveServerOptions extends LiveOptions {
  readonly respond?: Responder
  readonly core?: Partial<CoreOptions>
}

/** Starts a Live server without REST. */
export async function startLive(options: LiveServerOptions = {}): Promise<LiveServer> {
  const { respond = replies({}), core: coreOptions, ...liveOptions } = options
  const prompts: Prompt[] = []
  const core = createCore({
    models: [/^gemini-/],
    paceMs: 0,
    log: () => undefined,
    synthesize: synthesizeTone,
    ...coreOptions,
    respond: (prompt) => {
      prompts.push(prompt)
      return respond(prompt)
    },
  })
  const server = createServer()
  const live = attachLive(server, core, liveOptions)
  const port = await listen(server)
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    live,
    core,
    prompts,
    async [Symbol.asyncDispose]() {
      await live.close()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Returns the actions listed for the last text, or for the functions of the last responses: `(name, … answered)`. */
export function replies(actions: Readonly<Record<string, readonly Action[]>>): Responder {
  return (prompt) => {
    const input = lastInput(prompt)
    return actions[input] ?? [{ type: 'say', text: `You said: ${input}` }]
  }
}

function lastInput({ contents }: Prompt): string {
  const parts = contents.at(-1)?.parts ?? []
  const names = parts.flatMap((part) => part.functionResponse?.name ?? [])
  if (names.length > 0) return `(${names.join(', ')} answered)`
  return parts.map((part) => part.text ?? '').join('')
}

export const say = (text: string): Action => ({ type: 'say', text })
export const wait = (gate: string): Action => ({ type: 'wait', gate })
/** Calls a function. The id of the call is the name of the function. */
export const call = (
  name: string,
  more: Partial<Extract<Action, { type: 'call' }>> = {},
): Action => ({
  type: 'call',
  name,
  args: {},
  id: name,
  ...more,
})

/** The settings of a plain session. */
export const TURN_SETTINGS: TurnSettings = {
  model: NATIVE_AUDIO,
  modality: 'TEXT',
  transcribe: false,
  includeThoughts: false,
  paceMs: 0,
  realTime: false,
  isBlocking: () => true,
  newId: () => 'id',
  synthesize: () => [],
}

export interface ClientOptions {
  readonly model?: string
  readonly apiKey?: string
  readonly apiVersion?: string
  readonly config?: LiveConnectConfig
}

type Matches = (message: LiveServerMessage) => unknown

/** A session of the Gen AI SDK that keeps its unread messages. */
export interface Client extends AsyncDisposable {
  readonly session: Session
  readonly closed: Promise<CloseInfo>
  /** Returns the unread messages up to and including the first match. */
  until(matches: Matches): Promise<LiveServerMessage[]>
  say(text: string): void
}

/** Connects the Gen AI SDK. The default modality is TEXT. */
export async function connect(
  server: Pick<LiveServer, 'baseUrl'>,
  options: ClientOptions = {},
): Promise<Client> {
  const inbox = createInbox()
  const session = await Promise.race([
    openSession(server, options, inbox),
    inbox.closed.then((closing) => {
      throw new Error(`closed with ${formatClose(closing)}`)
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

/** Returns the close code and reason for a rejected setup. */
export async function rejection(server: Pick<LiveServer, 'baseUrl'>, options: ClientOptions = {}) {
  const inbox = createInbox()
  // The SDK does not settle this promise when the server closes. The close event does.
  void openSession(server, options, inbox)
  return inbox.closed
}

function openSession(
  server: Pick<LiveServer, 'baseUrl'>,
  options: ClientOptions,
  inbox: ReturnType<typeof createInbox>,
) {
  const { model = NATIVE_AUDIO, apiKey = 'key', apiVersion = 'v1beta', config } = options
  const ai = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: server.baseUrl, apiVersion } })
  return ai.live.connect({
    model,
    config: { responseModalities: [Modality.TEXT], ...config },
    callbacks: { onmessage: inbox.push, onclose: inbox.close, onerror: () => undefined },
  })
}

function createInbox() {
  const unread: LiveServerMessage[] = []
  const closing = defer<CloseInfo>()
  let ended: CloseInfo | undefined
  let change = defer<void>()
  const notify = () => {
    change.resolve()
    change = defer<void>()
  }
  return {
    closed: closing.promise,
    push(this: void, message: LiveServerMessage) {
      unread.push(message)
      notify()
    },
    close(this: void, { code, reason }: CloseInfo) {
      ended = { code, reason }
      closing.resolve(ended)
      notify()
    },
    async until(this: void, matches: Matches) {
      const read: LiveServerMessage[] = []
      for (;;) {
        const message = unread.shift()
        if (message) {
          read.push(message)
          if (matches(message)) return read
        } else if (ended) {
          throw new Error(`closed with ${formatClose(ended)}; read ${JSON.stringify(read)}`)
        } else {
          await change.promise
        }
      }
    },
  }
}

export const turnComplete: Matches = (message) => message.serverContent?.turnComplete
export const toolCall: Matches = (message) => message.toolCall
export const interrupted: Matches = (message) => message.serverContent?.interrupted

/** Returns the text of the model, without thoughts. */
export function textOf(messages: readonly LiveServerMessage[]): string {
  return messages
    .flatMap((message) => message.serverContent?.modelTurn?.parts ?? [])
    .map((part) => (part.thought ? '' : (part.text ?? '')))
    .join('')
}

/** Returns the field names of the messages, with those of `serverContent`. */
export function kinds(messages: readonly LiveServerMessage[]): string[] {
  return messages.flatMap((message) =>
    Object.entries(message).flatMap(([kind, value]) =>
      kind === 'serverContent' ? Object.keys(value as object) : [kind],
    ),
  )
}

/** Formats a close code and reason. */
export const formatClose = ({ code, reason }: CloseInfo) => `${code} ${reason}`

/** Connects a plain WebSocket, for messages that the SDK cannot send. */
export async function connectRaw(server: LiveServer, path = `${PATH}?key=key`) {
  const socket = new WebSocket(server.baseUrl.replace('http', 'ws') + path)
  const closed = new Promise<CloseInfo>((resolve) => {
    socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }))
  })
  const rejected = new Promise<string>((resolve) => {
    socket.on('error', (error) => resolve(error.message))
  })
  await Promise.race([new Promise<void>((resolve) => socket.on('open', resolve)), rejected])
  const send = (frame: unknown) =>
    socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  return { socket, closed, rejected, send }
}

/** The setup of a session that replies in text. */
export const TEXT_SETUP = {
  setup: { model: `models/${NATIVE_AUDIO}`, generationConfig: { responseModalities: ['TEXT'] } },
}

/** The sample rate of the microphone. */
export const INPUT_RATE = 16_000
/** 16 bit samples. */
export const INPUT_BYTES_PER_MS = (INPUT_RATE * 2) / 1_000

/** Returns a tone that the speech detection classifies as a voice. */
export function voice(ms: number): Int16Array {
  return new Int16Array((INPUT_RATE * ms) / 1_000).map((_, index) => Math.sin(index / 5) * 8000)
}

/** Returns samples without sound. */
export function silence(ms: number): Int16Array {
  return new Int16Array((INPUT_RATE * ms) / 1_000)
}

/** Joins samples to the audio of one message. */
export function audio(...parts: Int16Array[]) {
  const data = Buffer.concat(parts.map((samples) => Buffer.from(samples.buffer)))
  return { mimeType: `audio/pcm;rate=${INPUT_RATE}`, data: data.toString('base64') }
}
