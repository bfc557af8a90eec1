import { clients } from './clients.ts'

/** A received chunk. */
export interface WireChunk {
  readonly type: string
  readonly [key: string]: unknown
}

/**
 * The keys that the first release of AI SDK 6 and of 7 both know. Until 6.0.231 and 7.0.32 a client threw on any other one, so
 * these are all that a server may send to every client (CH1).
 */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  start: ['messageId', 'messageMetadata'],
  'start-step': [],
  'finish-step': [],
  'text-start': ['id'],
  'text-delta': ['id', 'delta'],
  'text-end': ['id'],
  'reasoning-start': ['id'],
  'reasoning-delta': ['id', 'delta'],
  'reasoning-end': ['id'],
  'tool-input-start': ['toolCallId', 'toolName'],
  'tool-input-available': ['toolCallId', 'toolName', 'input'],
  'tool-approval-request': ['approvalId', 'toolCallId'],
  'tool-output-available': ['toolCallId', 'output'],
  'tool-output-denied': ['toolCallId'],
  'tool-output-error': ['toolCallId', 'errorText'],
  file: ['url', 'mediaType'],
  'source-url': ['sourceId', 'url', 'title'],
  'source-document': ['sourceId', 'mediaType', 'title', 'filename'],
  'data-*': ['id', 'data', 'transient'],
  'message-metadata': ['messageMetadata'],
  finish: ['finishReason', 'messageMetadata'],
  abort: [],
  error: ['errorText'],
}

/** Reads the body of a stream, and lists the faults of its frames (SS1, SS2). */
export function readFrames(body: string): { chunks: WireChunk[]; faults: string[]; done: boolean } {
  const chunks: WireChunk[] = []
  const faults: string[] = []
  let done = false
  for (const frame of body.split('\n\n')) {
    if (frame === '' || /^: [\w-]+$/.test(frame)) continue
    if (done) faults.push(`after the end: ${frame}`)
    if (frame === 'data: [DONE]') done = true
    else if (/^data: \{[^\r\n]*\}$/.test(frame)) chunks.push(parseChunk(frame.slice(6)))
    // The last frame of a stream that was cut may be half a frame.
    else if (body.endsWith('\n\n')) faults.push(`not a frame: ${frame}`)
  }
  return { chunks, faults, done }
}

function parseChunk(json: string): WireChunk {
  // Every frame is an object. `findFaults` checks its content.
  return JSON.parse(json) as WireChunk
}

/** Returns the violations of the protocol in the chunks of one reader. */
export async function findFaults(chunks: readonly WireChunk[], whole: boolean): Promise<string[]> {
  const faults = findNestingFaults(chunks, whole)
  for (const chunk of chunks) {
    const name = chunk.type.startsWith('data-') ? 'data-*' : chunk.type
    const known = KEYS[name]
    if (!known) faults.push(`unknown type ${chunk.type}`)
    const extra = Object.keys(chunk).filter((key) => key !== 'type' && !known?.includes(key))
    if (extra.length > 0) faults.push(`${chunk.type} has ${extra.join()}`)
    for (const { name: version, acceptsChunk } of clients) {
      if (!(await acceptsChunk(chunk))) faults.push(`${version} refuses ${JSON.stringify(chunk)}`)
    }
  }
  return faults
}

/** CH2, CH3 and CH5: order of chunks within a turn. */
function findNestingFaults(chunks: readonly WireChunk[], whole: boolean): string[] {
  const faults: string[] = []
  const nesting = new Nesting(faults)
  for (const chunk of chunks) nesting.step(chunk)
  if (chunks.length === 0) return faults
  if (chunks[0]?.type !== 'start') faults.push(`begins with ${chunks[0]?.type}`)
  if (chunks.filter(({ type }) => type === 'start').length > 1) faults.push('starts twice')
  if (whole) nesting.end(chunks.at(-1)?.type)
  return faults
}

class Nesting {
  #prose: unknown
  #inStep = false
  #began = false
  #steps = 0
  readonly #calls = new Map<unknown, 'shown' | 'settled' | 'completed'>()
  /** The step in which the result of a call came. */
  readonly #settledIn = new Map<unknown, number>()
  /** The calls whose first result is not final. */
  readonly #preliminary = new Set<unknown>()
  readonly #faults: string[]

  constructor(faults: string[]) {
    this.#faults = faults
  }

  step({ type, id, toolCallId, data }: WireChunk): void {
    if (type === 'data-preliminary')
      this.#preliminary.add((data as { toolCallId: string }).toolCallId)
    const [, kind, act] = /^(text|reasoning)-(start|delta|end)$/.exec(type) ?? []
    if (kind !== undefined && act !== undefined) this.#readProse(act, id)
    else if (this.#prose !== undefined && !isUnseen(type)) {
      this.#faults.push(`${type} while ${String(this.#prose)} is open`)
    }
    if (type === 'start-step' || type === 'finish-step') this.#readStep(type === 'start-step')
    else if (!this.#inStep && needsStep(type) && !this.#continues(type, toolCallId)) {
      this.#faults.push(`${type} outside a step`)
    }
    if (toolCallId !== undefined) this.#readCall(type, toolCallId)
  }

  /**
   * What a client that has responded receives first: the outcome of the calls that it saw in an earlier stream. A call that it was handed
   * to run is shown again (BT130).
   */
  #continues(type: string, toolCallId: unknown): boolean {
    if (type === 'tool-input-available')
      return !this.#began || this.#calls.get(toolCallId) === 'shown'
    return !this.#began && (type.startsWith('tool-output') || type === 'data-approval')
  }

  end(type: string | undefined): void {
    if (type !== 'finish' && type !== 'error') this.#faults.push(`ends with ${type}`)
    if (this.#inStep) this.#faults.push('the last step is not finished')
  }

  #readProse(act: string, id: unknown): void {
    if (act === 'start' ? this.#prose !== undefined : this.#prose !== id) {
      this.#faults.push(`${act} of ${String(id)} while ${String(this.#prose)} is open`)
    }
    this.#prose = act === 'end' ? undefined : id
  }

  #readStep(starts: boolean): void {
    this.#began = true
    if (starts) this.#steps += 1
    if (starts === this.#inStep) this.#faults.push(`step ${starts ? 'started' : 'finished'} twice`)
    this.#inStep = starts
  }

  #readCall(type: string, id: unknown): void {
    const state = this.#calls.get(id)
    const output = type.startsWith('tool-output')
    // CH5: a final result comes in a later step than a preliminary one.
    const isLater = this.#settledIn.get(id) !== this.#steps
    const isFinal = state === 'settled' && isLater && this.#preliminary.has(id)
    if (output && state !== 'shown' && !isFinal && !this.#continues(type, id))
      this.#faults.push(`${type} of a call that is ${state}`)
    if (output) this.#settledIn.set(id, this.#steps)
    const ended = isFinal ? 'completed' : 'settled'
    this.#calls.set(id, output ? ended : 'shown')
  }
}

/** Chunks that belong to no step, so they may come between the pieces of a text. */
function isUnseen(type: string): boolean {
  return ['data-pcm', 'data-input-transcription', 'data-browser-call'].includes(type)
}

function needsStep(type: string): boolean {
  return /^(?:text|reasoning|tool|file|source|data)/.test(type) && !isUnseen(type)
}
