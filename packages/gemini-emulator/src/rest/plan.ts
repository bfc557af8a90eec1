import type { Act, Prompt } from '../mind.ts'
import type { Part } from '../wire/content.ts'
import { playedFailure, type GoogleError } from '../wire/google-error.ts'
import { splitPieces } from '../wire/pieces.ts'
import { partTokens } from '../wire/tokens.ts'
import { finishOf, type Finish, type Source } from './finish.ts'
import { permittedActs } from './permitted-acts.ts'

/** What happens on the wire, one step after the other; the last step ends the response. */
export type Step =
  | {
      readonly do: 'send'
      readonly parts: readonly Part[]
      readonly spent: Spent
      readonly finish?: Finish
    }
  | { readonly do: 'raw'; readonly message: unknown }
  | { readonly do: 'pause'; readonly ms: number }
  | { readonly do: 'wait'; readonly gate: string }
  | { readonly do: 'block'; readonly reason: string }
  | { readonly do: 'fail'; readonly error: GoogleError }
  | { readonly do: 'drop' }

/** Tokens made so far, this step included. */
export interface Spent {
  readonly candidates: number
  readonly thoughts: number
}

export interface PlanOptions {
  readonly paceMs: number
  readonly newId: () => string
}

/** Lays out the acts of the model as steps on the REST wire. */
export function planSteps(acts: readonly Act[], prompt: Prompt, options: PlanOptions): Step[] {
  const planner = new Planner(prompt, options)
  for (const act of permittedActs(acts, prompt)) {
    planner.add(act)
    if (planner.ended) return planner.steps
  }
  planner.finish('STOP')
  return planner.steps
}

class Planner {
  readonly steps: Step[] = []
  ended = false
  readonly #prompt: Prompt
  readonly #newId: () => string
  readonly #sources: Source[] = []
  #paceMs: number
  #spent: Spent = { candidates: 0, thoughts: 0 }
  #text = ''
  /** Neighbouring calls, which go out together. */
  #calls: Part[] = []

  constructor(prompt: Prompt, { paceMs, newId }: PlanOptions) {
    this.#prompt = prompt
    this.#newId = newId
    this.#paceMs = paceMs
  }

  add(act: Act): void {
    if (act.type !== 'call') this.#flushCalls()
    if (isContent(act)) return this.#addContent(act)
    if (isStep(act)) return this.#addStep(stepOf(act, this.#prompt.model))
    switch (act.type) {
      case 'ground':
        this.#sources.push(...act.sources)
        return
      case 'pace':
        this.#paceMs = act.ms
        return
      case 'finish':
        return this.finish(act.reason)
      case 'go-away':
      case 'cancel':
        // Only a Live session can announce its end or take a call back.
        return
    }
  }

  finish(reason: string): void {
    this.#flushCalls()
    this.ended = true
    const finish = finishOf(reason, this.#sources, this.#text)
    const last = this.steps.at(-1)
    if (last?.do === 'raw' && endsResponse(last.message)) return
    if (last?.do === 'send' && finish.withContent) {
      this.steps.splice(-1, 1, { ...last, finish })
      return
    }
    const parts = finish.withContent ? [{ text: '' }] : []
    this.steps.push({ do: 'send', parts, spent: this.#spent, finish })
  }

  #addContent(act: ContentAct): void {
    switch (act.type) {
      case 'say':
        this.#text += act.text
        for (const text of act.pieces ?? splitPieces(act.text)) this.#send([{ text }])
        return
      case 'think':
        return this.#think(act.pieces ?? splitPieces(act.text))
      case 'call':
        if (act.separate) this.#flushCalls()
        this.#calls.push(this.#callPart(act))
        return
      case 'image':
        return this.#send([{ inlineData: { mimeType: act.mimeType, data: act.data } }])
      case 'code':
        this.#send([{ executableCode: { language: act.language, code: act.code } }])
        return this.#send([{ codeExecutionResult: { outcome: act.outcome, output: act.output } }])
    }
  }

  #addStep(step: Step): void {
    this.steps.push(step)
    this.ended = step.do === 'block' || step.do === 'fail' || step.do === 'drop'
  }

  #think(pieces: readonly string[]): void {
    for (const text of pieces) {
      const part: Part = { text, thought: true }
      if (this.#prompt.includeThoughts) this.#send([part])
      else this.#spend([part])
    }
  }

  #callPart({ name, args, id }: Extract<Act, { type: 'call' }>): Part {
    const signed = isGemini3(this.#prompt.model)
    const callId = id ?? (signed ? this.#newId() : undefined)
    const functionCall = { ...(callId !== undefined && { id: callId }), name, args }
    // Of the calls of one step only the first carries the signature.
    return signed && this.#calls.length === 0
      ? { functionCall, thoughtSignature: signatureOf(name) }
      : { functionCall }
  }

  #flushCalls(): void {
    if (this.#calls.length === 0) return
    this.#send(this.#calls)
    this.#calls = []
  }

  #send(parts: readonly Part[]): void {
    this.#spend(parts)
    if (this.#paceMs > 0 && this.steps.at(-1)?.do === 'send') {
      this.steps.push({ do: 'pause', ms: this.#paceMs })
    }
    this.steps.push({ do: 'send', parts, spent: this.#spent })
  }

  #spend(parts: readonly Part[]): void {
    let { candidates, thoughts } = this.#spent
    for (const part of parts) {
      if (part.thought) thoughts += partTokens(part)
      else candidates += partTokens(part)
    }
    this.#spent = { candidates, thoughts }
  }
}

type ContentAct = Extract<Act, { type: 'say' | 'think' | 'call' | 'image' | 'code' }>
type StepAct = Extract<
  Act,
  { type: 'pause' | 'wait' | 'raw' | 'block' | 'fail' | 'drop' | 'close' }
>

function isContent(act: Act): act is ContentAct {
  return CONTENT_ACTS.has(act.type)
}

function isStep(act: Act): act is StepAct {
  return STEP_ACTS.has(act.type)
}

function stepOf(act: StepAct, model: string): Step {
  switch (act.type) {
    case 'pause':
      return { do: 'pause', ms: act.ms }
    case 'wait':
      return { do: 'wait', gate: act.gate }
    case 'raw':
      return { do: 'raw', message: act.message }
    case 'block':
      return { do: 'block', reason: act.reason }
    case 'fail':
      return { do: 'fail', error: playedFailure(act, model) }
    case 'drop':
    case 'close':
      return { do: 'drop' }
  }
}

export function isGemini3(model: string): boolean {
  return model.startsWith('gemini-3')
}

function signatureOf(name: string): string {
  return Buffer.from(`emulated thought before ${name}`).toString('base64')
}

function endsResponse(message: unknown): boolean {
  return /"(?:finishReason|promptFeedback|error)":/.test(JSON.stringify(message) ?? '')
}

const CONTENT_ACTS: ReadonlySet<Act['type']> = new Set<ContentAct['type']>([
  'say',
  'think',
  'call',
  'image',
  'code',
])

const STEP_ACTS: ReadonlySet<Act['type']> = new Set<StepAct['type']>([
  'pause',
  'wait',
  'raw',
  'block',
  'fail',
  'drop',
  'close',
])
