import type { Action, Prompt } from '../responders/responder.ts'
import type { Part } from '../wire/content.ts'
import type { GoogleError } from '../wire/google-error.ts'
import { scriptedError } from '../wire/google-error.ts'
import { partTokens, splitPieces } from '../wire/text.ts'
import type { Finish, OutputTokens, Source } from './render.ts'
import { createFinish } from './render.ts'
import { isObject } from '../wire/proto-json.ts'

/** One step of a response. The last step ends it. */
export type Step =
  | {
      readonly do: 'send'
      readonly parts: readonly Part[]
      readonly tokens: OutputTokens
      readonly finish?: Finish
    }
  | { readonly do: 'raw'; readonly message: unknown }
  | { readonly do: 'pause'; readonly ms: number }
  | { readonly do: 'wait'; readonly gate: string }
  | { readonly do: 'block'; readonly reason: string; readonly usage: boolean }
  | { readonly do: 'fail'; readonly error: GoogleError }
  | { readonly do: 'drop' }

interface PlanOptions {
  readonly paceMs: number
  readonly newId: () => string
}

/** Converts the actions of the model to the steps of a REST response. */
export function planResponse(
  actions: readonly Action[],
  prompt: Prompt,
  options: PlanOptions,
): Step[] {
  const planner = new Planner(prompt, options)
  for (const action of applyCallMode(actions, prompt)) {
    planner.add(action)
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
  #tokens: OutputTokens = { candidates: 0, thoughts: 0 }
  #text = ''
  /** Adjacent calls, which are sent in one message. */
  #calls: Part[] = []
  #isSigned = false

  constructor(prompt: Prompt, { paceMs, newId }: PlanOptions) {
    this.#prompt = prompt
    this.#newId = newId
    this.#paceMs = paceMs
  }

  add(action: Action): void {
    if (action.type !== 'call') this.#flushCalls()
    if (isContent(action)) return this.#addContent(action)
    if (isStep(action)) return this.#addStep(toStep(action, this.#prompt.model))
    switch (action.type) {
      case 'ground':
        this.#sources.push(...action.sources)
        return
      case 'pace':
        this.#paceMs = action.ms
        return
      case 'finish':
        return this.finish(action.reason)
      case 'go-away':
      case 'cancel':
        // Live only.
        return
    }
  }

  finish(reason: string): void {
    this.#flushCalls()
    this.ended = true
    const finish = createFinish(reason, this.#sources, this.#text)
    const last = this.steps.at(-1)
    if (last?.do === 'raw' && endsResponse(last.message)) return
    if (last?.do === 'send' && finish.withContent) {
      this.steps.splice(-1, 1, { ...last, finish })
      return
    }
    const parts = finish.withContent ? [{ text: '' }] : []
    this.steps.push({ do: 'send', parts, tokens: this.#tokens, finish })
  }

  #addContent(action: ContentAction): void {
    switch (action.type) {
      case 'say':
        this.#text += action.text
        for (const text of action.pieces ?? splitPieces(action.text)) this.#send([{ text }])
        return
      case 'think':
        return this.#think(action.pieces ?? splitPieces(action.text))
      case 'call':
        if (action.separate) this.#flushCalls()
        this.#calls.push(this.#callPart(action))
        return
      case 'image':
        return this.#send([{ inlineData: { mimeType: action.mimeType, data: action.data } }])
      case 'code':
        this.#send([{ executableCode: { language: action.language, code: action.code } }])
        return this.#send([
          { codeExecutionResult: { outcome: action.outcome, output: action.output } },
        ])
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
      else this.#count([part])
    }
  }

  #callPart({ name, args, id }: Extract<Action, { type: 'call' }>): Part {
    const signed = isGemini3(this.#prompt.model)
    const callId = id ?? (signed ? this.#newId() : undefined)
    const functionCall = { ...(callId !== undefined && { id: callId }), name, args }
    // Only the first call of a response has the signature, also if the others are sent in messages of their own.
    if (!signed || this.#isSigned) return { functionCall }
    this.#isSigned = true
    return { functionCall, thoughtSignature: signatureOf(name) }
  }

  #flushCalls(): void {
    if (this.#calls.length === 0) return
    this.#send(this.#calls)
    this.#calls = []
  }

  #send(parts: readonly Part[]): void {
    this.#count(parts)
    if (this.#paceMs > 0 && this.steps.at(-1)?.do === 'send') {
      this.steps.push({ do: 'pause', ms: this.#paceMs })
    }
    this.steps.push({ do: 'send', parts, tokens: this.#tokens })
  }

  #count(parts: readonly Part[]): void {
    let { candidates, thoughts } = this.#tokens
    for (const part of parts) {
      if (part.thought) thoughts += partTokens(part)
      else candidates += partTokens(part)
    }
    this.#tokens = { candidates, thoughts }
  }
}

type ContentAction = Extract<Action, { type: 'say' | 'think' | 'call' | 'image' | 'code' }>
type StepAction = Extract<
  Action,
  { type: 'pause' | 'wait' | 'raw' | 'block' | 'fail' | 'drop' | 'close' }
>

function isContent(action: Action): action is ContentAction {
  return CONTENT_ACTIONS.has(action.type)
}

function isStep(action: Action): action is StepAction {
  return STEP_ACTIONS.has(action.type)
}

function toStep(action: StepAction, model: string): Step {
  switch (action.type) {
    case 'pause':
      return { do: 'pause', ms: action.ms }
    case 'wait':
      return { do: 'wait', gate: action.gate }
    case 'raw':
      return { do: 'raw', message: action.message }
    case 'block':
      return { do: 'block', reason: action.reason, usage: action.usage !== false }
    case 'fail':
      return { do: 'fail', error: scriptedError(action, model) }
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

const CONTENT_ACTIONS: ReadonlySet<Action['type']> = new Set<ContentAction['type']>([
  'say',
  'think',
  'call',
  'image',
  'code',
])

const STEP_ACTIONS: ReadonlySet<Action['type']> = new Set<StepAction['type']>([
  'pause',
  'wait',
  'raw',
  'block',
  'fail',
  'drop',
  'close',
])

/** Applies the calling mode: NONE removes all calls, ANY ensures a call of an allowed function. */
function applyCallMode(actions: readonly Action[], prompt: Prompt): readonly Action[] {
  if (prompt.callMode === 'NONE') return actions.filter((action) => action.type !== 'call')
  if (prompt.callMode !== 'ANY') return actions
  const allowed = new Set(prompt.functions.map(({ name }) => name))
  const kept = actions.filter((action) => action.type !== 'call' || allowed.has(action.name))
  if (kept.some((action) => action.type === 'call' || ENDINGS.has(action.type))) return kept
  const [forced] = prompt.functions
  if (!forced) return kept
  const args = minimalValue(forced.parameters ?? forced.parametersJsonSchema)
  return [...kept, { type: 'call', name: forced.name, args: isObject(args) ? args : {} }]
}

/** Returns a minimal value of the schema, for a call that the responder did not return. */
function minimalValue(schema: unknown): unknown {
  if (!isObject(schema)) return undefined
  const { type, enum: choices, required, properties } = schema
  if (Array.isArray(choices)) return choices[0]
  switch (String(type).toLowerCase()) {
    case 'object': {
      const names = Array.isArray(required) ? required.map(String) : []
      const fields = isObject(properties) ? properties : {}
      return Object.fromEntries(names.map((name) => [name, minimalValue(fields[name])]))
    }
    case 'array':
      return []
    case 'number':
    case 'integer':
      return 0
    case 'boolean':
      return false
    default:
      return ''
  }
}

const ENDINGS: ReadonlySet<Action['type']> = new Set(['block', 'fail', 'drop', 'raw', 'finish'])
