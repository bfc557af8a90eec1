import type { Content, FunctionCall, GenerateContentResponse, Part } from '@google/genai'
import {
  ApiError,
  Behavior,
  FinishReason,
  FunctionCallingConfigMode,
  FunctionResponseScheduling,
} from '@google/genai'

import { TOOL, type Gemini, type LiveClient, type Received } from './gemini.ts'

/** An assumption about Gemini that this project relies on. */
export interface Assumption {
  readonly id: string
  /** The rules of the emulator that implement it. */
  readonly rules: readonly string[]
  readonly claim: string
  /** Checks it. Undefined if a person has to, because it needs a voice, an hour or an incident. */
  readonly check?: (gemini: Gemini) => Promise<Finding>
}

/** What a check has seen, and whether that is what was assumed. */
export interface Finding {
  readonly holds: boolean
  readonly seen: string
}

const TOOLS = [{ functionDeclarations: [TOOL] }]
const BOTH = ['Tokyo', 'Oslo'].map((city) => `[[call get_weather {"city":"${city}"}]]`).join('')
const ASK_BOTH = 'Call get_weather for Tokyo and for Oslo, both at once. Say nothing else.'
const ASK_ONE = 'Call get_weather for Tokyo.'
const ONE = '[[call get_weather {"city":"Tokyo"}]]'

export const ASSUMPTIONS: readonly Assumption[] = [
  {
    id: 'wrong-key',
    rules: ['EM25'],
    claim: 'A wrong key is rejected with the status 400 and the reason API_KEY_INVALID.',
    check: async ({ stranger, target: { model } }) => {
      const error = await failure(stranger.models.generateContent({ model, contents: 'Hello' }))
      return { holds: error.status === 400 && /API_KEY_INVALID/.test(error.text), seen: error.text }
    },
  },
  {
    id: 'unknown-model',
    rules: ['EM26'],
    claim: 'A model that does not exist is rejected with the status 404.',
    check: async ({ client, target }) => {
      const model = target.isEmulated ? 'unknown-model' : 'gemini-0.0-none'
      const error = await failure(client.models.generateContent({ model, contents: 'Hello' }))
      return { holds: error.status === 404, seen: error.text }
    },
  },
  {
    id: 'usage',
    rules: ['EM12'],
    claim: 'The last chunk of a stream has the usage of the whole response.',
    check: async (gemini) => {
      const chunks = await stream(gemini, gemini.prompt('Say hello.', '[[say Hello there.]]'))
      const counts = chunks.map(({ usageMetadata }) => usageMetadata?.totalTokenCount ?? 0)
      return {
        holds: (counts.at(-1) ?? 0) > 0,
        seen: `total tokens by chunk: ${counts.join(', ')}`,
      }
    },
  },
  {
    id: 'max-tokens',
    rules: ['EM14'],
    claim: 'A reply that reaches maxOutputTokens ends with MAX_TOKENS and keeps its text.',
    check: async (gemini) => {
      const words = 'Count from one to five hundred in words.'
      const chunks = await stream(
        gemini,
        gemini.prompt(words, '[[say One two]][[finish MAX_TOKENS]]'),
        {
          maxOutputTokens: 200,
          thinkingConfig: { thinkingBudget: 0 },
        },
      )
      const reason = chunks.at(-1)?.candidates?.[0]?.finishReason
      const text = chunks.map((chunk) => chunk.text ?? '').join('')
      return {
        holds: reason === FinishReason.MAX_TOKENS && text !== '',
        seen: `${reason}, ${text.length} characters`,
      }
    },
  },
  {
    id: 'parallel-calls',
    rules: ['EM6'],
    claim: 'Calls that are made at once are sent in one chunk or in several.',
    check: async (gemini) => {
      const chunks = await stream(gemini, gemini.prompt(ASK_BOTH, BOTH), { tools: TOOLS })
      const counts = chunks.map((chunk) => chunk.functionCalls?.length ?? 0)
      const total = counts.reduce((sum, count) => sum + count, 0)
      return { holds: total === 2, seen: `calls by chunk: ${counts.join(', ')}` }
    },
  },
  {
    id: 'thought-signatures',
    rules: ['EM8'],
    claim: 'Of several calls of a Gemini 3 model, only the first one has a thought signature.',
    check: async (gemini) => {
      const parts = await call(gemini, ASK_BOTH, BOTH)
      const signed = parts.map(({ thoughtSignature }) => thoughtSignature !== undefined)
      return {
        holds: signed[0] === true && !signed.slice(1).includes(true),
        seen: `signed: ${signed.join(', ')}`,
      }
    },
  },
  {
    id: 'missing-signature',
    rules: ['EM8'],
    claim:
      'A Gemini 3 model rejects a call of the current turn without its signature with the status 400.',
    check: async (gemini) => {
      const parts = await call(gemini, ASK_ONE, ONE)
      const unsigned = parts.map(({ functionCall }) => ({ ...(functionCall && { functionCall }) }))
      const error = await failure(answer(gemini, ASK_ONE, ONE, unsigned, unsigned.length))
      return { holds: error.status === 400, seen: error.text }
    },
  },
  {
    id: 'missing-response',
    rules: ['EM34'],
    claim: 'A request with fewer responses than calls is rejected with the status 400.',
    check: async (gemini) => {
      const parts = await call(gemini, ASK_BOTH, BOTH)
      const error = await failure(answer(gemini, ASK_BOTH, BOTH, parts, parts.length - 1))
      return { holds: parts.length > 1 && error.status === 400, seen: error.text }
    },
  },
  {
    id: 'block-without-usage',
    rules: ['EM15'],
    claim: 'A blocked prompt has no candidate, and may have no usage.',
  },
  {
    id: 'rate-limit',
    rules: ['EM20'],
    claim: 'An exhausted quota is reported with the status 429 and a delay in RetryInfo.',
  },
  {
    id: 'live-wrong-key',
    rules: ['EL3'],
    claim: 'A wrong key closes the connection with 1007.',
    check: async (gemini) => {
      using live = await gemini.connect({}, { client: gemini.stranger })
      const { code, reason } = await live.closed()
      return { holds: code === 1007, seen: `${code} ${reason}` }
    },
  },
  {
    id: 'live-unknown-model',
    rules: ['EL4'],
    claim: 'A model that does not exist closes the connection with 1008.',
    check: async (gemini) => {
      const model = gemini.target.isEmulated ? 'unknown-model' : 'gemini-0.0-none'
      using live = await gemini.connect({}, { model })
      const { code, reason } = await live.closed()
      return { holds: code === 1008, seen: `${code} ${reason}` }
    },
  },
  {
    id: 'live-turn',
    rules: ['EL12'],
    claim: 'A turn ends with generationComplete and turnComplete, and its usage follows.',
    check: async (gemini) => {
      using live = await gemini.connect()
      live.say(gemini.prompt('Say hello.', '[[say Hello there.]]'))
      await live.until(isTurnEnd)
      const order = live.received.flatMap(({ message }) =>
        Object.keys(message?.serverContent ?? {}),
      )
      const usage = live.received.some(({ message }) => message?.usageMetadata)
      const isOrdered = order.includes('generationComplete')
      return {
        holds: usage && isOrdered,
        seen: `${[...new Set(order)].join(', ')}; usage: ${usage}`,
      }
    },
  },
  {
    id: 'live-interruption',
    rules: ['EL15'],
    claim: 'New content interrupts the model: interrupted, then turnComplete.',
    check: async (gemini) => {
      using live = await gemini.connect()
      live.say(gemini.prompt('Tell a long story.', '[[say Once upon]][[wait never]]'))
      await live.until(({ message }) => message?.serverContent?.modelTurn)
      live.say(gemini.prompt('Stop. Say only: done.', '[[say Done.]]'))
      await live.until(({ message }) => message?.serverContent?.interrupted)
      await live.until(isTurnEnd)
      return { holds: true, seen: 'interrupted and turnComplete were sent' }
    },
  },
  {
    id: 'live-resumption',
    rules: ['EL41'],
    claim:
      'A handle is sent if the setup asks for it, and a connection with the handle knows the conversation.',
    check: async (gemini) => {
      const handle = await rest(gemini)
      using live = await gemini.connect({ sessionResumption: { handle } })
      live.say(gemini.prompt('Say hello again.', '[[say Hello again.]]'))
      await live.until((each) => isTurnEnd(each) || each.closed)
      const { code } = live.received.find((each) => each.closed)?.closed ?? {}
      return { holds: handle !== '' && code === undefined, seen: `closed: ${code ?? 'no'}` }
    },
  },
  {
    id: 'live-wrong-handle',
    rules: ['EL43'],
    claim: 'A handle that does not exist closes the connection with 1008 or 1007.',
    check: async (gemini) => {
      using live = await gemini.connect({ sessionResumption: { handle: 'no-such-handle' } })
      const { code, reason } = await live.closed()
      return { holds: code === 1008 || code === 1007, seen: `${code} ${reason}` }
    },
  },
  {
    id: 'live-second-connection',
    rules: ['EL320'],
    claim: 'A handle is rejected with 1011 while the first connection is open.',
    check: async (gemini) => {
      using first = await gemini.connect({ sessionResumption: {} })
      const handle = await readHandle(gemini, first)
      using second = await gemini.connect({ sessionResumption: { handle } })
      const { code, reason } = await second.closed()
      return { holds: code === 1011, seen: `${code} ${reason}` }
    },
  },
  {
    id: 'live-call-turn',
    rules: ['EL36'],
    claim: 'The turn of a blocking call completes at once, except for gemini-3…-flash-live models.',
    check: async (gemini) => {
      using live = await gemini.connect({ tools: [blocking()] })
      await callLive(gemini, live)
      const from = live.received.length
      const isCompleteBefore = live.received.some(isTurnEnd)
      respond(live, {})
      await live.until(isTurnEnd, from)
      const isOpen = /^gemini-3\..*-flash-live/.test(gemini.target.liveModel)
      return {
        holds: isCompleteBefore !== isOpen,
        seen: `complete before the response: ${isCompleteBefore}`,
      }
    },
  },
  {
    id: 'live-silent-status',
    rules: ['EL39', 'EL40'],
    claim:
      'The model does not reply to a SILENT response with willContinue, and replies to the final one.',
    check: async (gemini) => {
      using live = await gemini.connect({ tools: [nonBlocking()] })
      const { id = '' } = await callLive(gemini, live)
      await live.until(isTurnEnd)
      const before = live.received.length
      const status = { response: { status: 'awaiting_approval' }, willContinue: true }
      const functionResponses = { id, name: TOOL.name ?? '', ...status }
      const scheduling = FunctionResponseScheduling.SILENT
      live.session?.sendToolResponse({ functionResponses: { ...functionResponses, scheduling } })
      respond(live, { sky: 'sunny' })
      await live.until(isTurnEnd, before)
      return { holds: true, seen: 'one reply, after the final response' }
    },
  },
  {
    id: 'live-3.8-setup',
    rules: ['EL490'],
    claim: 'gemini-3.8-live rejects proactiveAudio: false with 1007.',
    check: async (gemini) => {
      const config = { proactivity: { proactiveAudio: false } }
      using live = await gemini.connect(config, { model: 'gemini-3.8-live' })
      const { code, reason } = await live.closed()
      return { holds: code === 1007, seen: `${code} ${reason}` }
    },
  },
  {
    id: 'live-empty-result',
    rules: ['EL1081'],
    claim: 'gemini-3.8-live makes a call again after an empty result.',
    check: async (gemini) => {
      using live = await gemini.connect({ tools: TOOLS }, { model: 'gemini-3.8-live' })
      await callLive(gemini, live)
      const from = live.received.length
      respond(live, undefined)
      await live.until((each) => readCalls(each).length > 0 || isTurnEnd(each), from)
      const again = live.received.slice(from).flatMap(readCalls).length
      return { holds: again > 0, seen: `calls after the empty result: ${again}` }
    },
  },
  {
    id: 'live-interrupt-waits',
    rules: ['EL1080'],
    claim: 'gemini-3.8-live holds an INTERRUPT response back while the person speaks.',
  },
  {
    id: 'live-lifetime',
    rules: ['EL1082'],
    claim: 'A connection closes with 1011 after 58 minutes, and goAway announces it.',
  },
  {
    id: 'live-slow-pongs',
    rules: ['EL1083'],
    claim: 'A pong may take 8 to 30 seconds.',
  },
  {
    id: 'live-input-during-call',
    rules: ['EL33', 'EL34'],
    claim:
      'Speech cancels the blocking calls of a model, and text waits. By public reports, any input cancels them.',
  },
  {
    id: 'live-turn-reasons',
    rules: ['EL19'],
    claim:
      'A turn that ends for another reason has turnCompleteReason, with the names of finish reasons.',
  },
]

async function stream(
  { client, target: { model } }: Gemini,
  contents: string,
  config: object = {},
): Promise<GenerateContentResponse[]> {
  const chunks: GenerateContentResponse[] = []
  for await (const chunk of await client.models.generateContentStream({ model, contents, config }))
    chunks.push(chunk)
  return chunks
}

/** Returns the calls of a response, with their signatures. */
async function call(gemini: Gemini, words: string, script: string): Promise<Part[]> {
  const { client, target } = gemini
  const contents = gemini.prompt(words, script)
  const toolConfig = { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } }
  const config = { tools: TOOLS, toolConfig }
  const response = await client.models.generateContent({ model: target.model, contents, config })
  return (response.candidates?.[0]?.content?.parts ?? []).filter(({ functionCall }) => functionCall)
}

/** Sends the results of the first calls. */
async function answer(
  gemini: Gemini,
  words: string,
  script: string,
  calls: Part[],
  count: number,
): Promise<unknown> {
  const results = calls.slice(0, count).map(({ functionCall }) => ({
    functionResponse: { name: functionCall?.name ?? '', response: { sky: 'sunny' } },
  }))
  const contents: Content[] = [
    { role: 'user', parts: [{ text: gemini.prompt(words, script) }] },
    { role: 'model', parts: calls },
    { role: 'user', parts: results },
  ]
  const { model } = gemini.target
  return gemini.client.models.generateContent({ model, contents, config: { tools: TOOLS } })
}

async function failure(request: Promise<unknown>): Promise<{ status: number; text: string }> {
  try {
    await request
    return { status: 200, text: 'The request was accepted.' }
  } catch (error) {
    if (error instanceof ApiError) return { status: error.status, text: error.message }
    throw error
  }
}

function isTurnEnd({ message }: Received): boolean {
  return message?.serverContent?.turnComplete === true
}

function readCalls({ message }: Received): FunctionCall[] {
  return message?.toolCall?.functionCalls ?? []
}

/** Makes the model call the tool. */
async function callLive(gemini: Gemini, live: LiveClient): Promise<FunctionCall> {
  live.say(gemini.prompt(ASK_ONE, `${ONE}[[then]][[say It is sunny.]]`))
  const [made] = readCalls(await live.until((each) => readCalls(each).length > 0))
  return made ?? {}
}

/** Sends the result of the last call. */
function respond(live: LiveClient, sky: object | undefined): void {
  const { id = '' } = live.received.flatMap(readCalls).at(-1) ?? {}
  const response = sky === undefined ? {} : { sky: 'sunny', ...sky }
  live.session?.sendToolResponse({ functionResponses: { id, name: TOOL.name ?? '', response } })
}

const blocking = () => ({ functionDeclarations: [{ ...TOOL, behavior: Behavior.BLOCKING }] })
const nonBlocking = () => ({ functionDeclarations: [{ ...TOOL, behavior: Behavior.NON_BLOCKING }] })

async function readHandle(gemini: Gemini, live: LiveClient): Promise<string> {
  live.say(gemini.prompt('Say hello.', '[[say Hello there.]]'))
  await live.until(isTurnEnd)
  const { message } = await live.until((each) => each.message?.sessionResumptionUpdate?.newHandle)
  return message?.sessionResumptionUpdate?.newHandle ?? ''
}

/** Returns the handle of a session whose connection has ended. */
async function rest(gemini: Gemini): Promise<string> {
  using live = await gemini.connect({ sessionResumption: {} })
  const handle = await readHandle(gemini, live)
  live.session?.close()
  await live.closed()
  return handle
}
