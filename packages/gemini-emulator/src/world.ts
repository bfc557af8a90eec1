import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { EmulatorError } from './emulator-error.ts'
import { createGates, type Gates } from './gates.ts'
import type { Act, Mind, Prompt } from './mind.ts'
import type { Content } from './wire/content.ts'

/** Turns what was spoken, after what the model remembers, into text; the emulator has no ears of its own. */
export type Transcribe = (speech: Speech, history: readonly Content[]) => string | Promise<string>

/**
 * Turns the pieces of one text into speech: signed 16-bit mono samples at 24 kHz, one array for each piece. An empty array
 * leaves a piece unspoken.
 */
export type Synthesize = (pieces: readonly string[]) => readonly Int16Array[]

/** One stretch of speech: signed 16-bit little-endian mono samples. */
export interface Speech {
  readonly pcm: Uint8Array
  readonly sampleRate: number
}

export interface WorldOptions {
  readonly mind: Mind
  /** The only key that is accepted; without it every non-empty key is. */
  readonly apiKey?: string | undefined
  /** Names (`gemini-2.5-flash`) or patterns of the models that exist. */
  readonly models: readonly (string | RegExp)[]
  /** Milliseconds between two streamed pieces, unless the script changes the pace. */
  readonly paceMs: number
  readonly transcribe?: Transcribe | undefined
  readonly synthesize: Synthesize
  readonly log: (line: string) => void
}

type KeyVerdict = 'accepted' | 'missing' | 'invalid'

/** What the REST and the Live side of one emulator share. */
export interface World extends WorldOptions {
  readonly gates: Gates
  /** Asks the mind; rejects with an `EmulatorError` (`bad-script`, `no-answer`) that is meant for the client. */
  think(prompt: Prompt): Promise<readonly Act[]>
  /** `model` with or without the `models/` prefix. */
  hasModel(model: string): boolean
  judgeKey(key: string | null | undefined): KeyVerdict
  /** Resolves after `ms`; rejects when the signal aborts. */
  pause(ms: number, signal: AbortSignal): Promise<void>
  newId(): string
}

export function createWorld(options: WorldOptions): World {
  return {
    ...options,
    gates: createGates(),
    async think(prompt) {
      const acts = await options.mind(prompt)
      if (acts) return acts
      throw new EmulatorError('no-answer', noAnswer(prompt))
    },
    hasModel(model) {
      const name = model.replace(/^models\//, '')
      return options.models.some((known) =>
        typeof known === 'string' ? known === name : name.search(known) >= 0,
      )
    },
    judgeKey(key) {
      if (!key) return 'missing'
      return options.apiKey === undefined || options.apiKey === key ? 'accepted' : 'invalid'
    },
    async pause(ms, signal) {
      signal.throwIfAborted()
      if (ms > 0) await sleep(ms, undefined, { signal })
    },
    newId: () => randomUUID(),
  }
}

function noAnswer(prompt: Prompt): string {
  const last = prompt.contents.at(-1)?.parts?.at(-1)
  const asked = JSON.stringify(last ?? null).slice(0, 200)
  return `gemini-emulator: no mind answers this prompt, which ends in ${asked}. Add an exchange to the scenario, or put another mind behind it with firstOf(…).`
}
