import type {
  FunctionDeclaration,
  LiveConnectConfig,
  LiveServerMessage,
  Session,
} from '@google/genai'
import { GoogleGenAI, Modality } from '@google/genai'

/** The service to check, and the models to check it with. */
export interface Target {
  readonly apiKey: string
  /** Default: Google's. */
  readonly baseUrl?: string
  readonly model: string
  readonly liveModel: string
  /** Whether the service is the emulator, which needs a script in the prompt. */
  readonly isEmulated: boolean
}

export const TOOL: FunctionDeclaration = {
  name: 'get_weather',
  description: 'Returns the weather of a city.',
  parametersJsonSchema: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
  },
}

/** How long to wait for a message or a close of Gemini Live. */
const MAX_WAIT_MS = 20_000

/** Sends requests to the service that is checked. */
export class Gemini {
  readonly target: Target
  readonly client: GoogleGenAI

  constructor(target: Target) {
    this.target = target
    this.client = this.#open(target.apiKey)
  }

  #open(apiKey: string): GoogleGenAI {
    const { baseUrl } = this.target
    return new GoogleGenAI({ apiKey, ...(baseUrl !== undefined && { httpOptions: { baseUrl } }) })
  }

  /** Returns a client with a key that does not exist. */
  get stranger(): GoogleGenAI {
    return this.#open('not-a-key')
  }

  /** Returns a prompt for a model. The emulator reads the script instead. */
  prompt(words: string, script: string): string {
    return this.target.isEmulated ? script : words
  }

  async connect(
    config: LiveConnectConfig = {},
    { client = this.client, model = this.target.liveModel } = {},
  ): Promise<LiveClient> {
    const live = new LiveClient()
    const opened = client.live.connect({
      model,
      config: { responseModalities: [Modality.AUDIO], outputAudioTranscription: {}, ...config },
      callbacks: {
        onmessage: (message) => live.take({ message }),
        onclose: (event) => live.take({ closed: readClose(event) }),
        onerror: () => undefined,
      },
    })
    // `connect` does not return if Gemini rejects the setup.
    live.session = await Promise.race([opened, live.ended])
    return live
  }
}

/** `@google/genai` needs the types of a browser for its close event. */
function readClose(event: unknown): { readonly code: number; readonly reason: string } {
  return event as { code: number; reason: string }
}

/** What a live session has sent. */
export interface Received {
  readonly message?: LiveServerMessage
  readonly closed?: { readonly code: number; readonly reason: string }
}

/** One connection to Gemini Live. */
export class LiveClient implements Disposable {
  session: Session | undefined
  readonly received: Received[] = []
  /** Resolves when the connection has ended. */
  readonly ended: Promise<undefined>
  #end: () => void = () => undefined
  readonly #waiting = new Set<() => void>()

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#end = () => resolve(undefined)
    })
  }

  take(received: Received): void {
    this.received.push(received)
    if (received.closed) this.#end()
    for (const check of this.#waiting) check()
  }

  say(text: string): void {
    this.session?.sendClientContent({ turns: [{ role: 'user', parts: [{ text }] }] })
  }

  /** Returns the first thing after the `from`th that matches. Rejects if nothing comes for long. */
  until(matches: (received: Received) => unknown, from = 0): Promise<Received> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(check)
        const seen = JSON.stringify(this.received).slice(0, 1_000)
        reject(new Error(`Nothing matched in ${MAX_WAIT_MS / 1000} s. Received: ${seen}`))
      }, MAX_WAIT_MS)
      const check = (): void => {
        const found = this.received.slice(from).find((each) => matches(each))
        if (!found) return
        clearTimeout(timer)
        this.#waiting.delete(check)
        resolve(found)
      }
      this.#waiting.add(check)
      check()
    })
  }

  async closed(): Promise<{ readonly code: number; readonly reason: string }> {
    const { closed } = await this.until((each) => each.closed)
    return closed ?? { code: 0, reason: '' }
  }

  [Symbol.dispose](): void {
    this.session?.close()
  }
}
