import type { Action } from './responder.ts'
import { solidImage } from './solid-image.ts'
import { isObject } from '../wire/proto-json.ts'

/** The text between the name of a directive and its closing brackets. */
export interface Argument {
  readonly text: string
  /** The JSON of a directive that takes JSON. */
  readonly json?: unknown
}

export interface Directive {
  /** An example for the error message. */
  readonly form: string
  /** `named-json` is a name followed by JSON. Brackets inside JSON do not end the directive. */
  readonly takes: 'text' | 'json' | 'named-json'
  /** Returns `undefined` if the argument is invalid. */
  read(argument: Argument): Action | undefined
}

/** All directives except `then`. */
export const DIRECTIVES: Readonly<Record<string, Directive>> = {
  say: text('[[say Hello]]', (words) => (words ? { type: 'say', text: words } : undefined)),
  think: text('[[think Let me see.]]', (words) =>
    words ? { type: 'think', text: words } : undefined,
  ),
  call: call('[[call tool {"json": 1}]]', false),
  'call-separate': call('[[call-separate tool {"json": 1}]]', true),
  image: text('[[image red]] or [[image #ff8800]]', (colour) => {
    const data = solidImage(colour)
    return data === undefined ? undefined : { type: 'image', mimeType: 'image/png', data }
  }),
  code: text('[[code print(1) => 1]]', readCode),
  ground: text('[[ground https://example.com Title]]', (words) => {
    const [, uri, title] = /^(https?:\/\/\S+)\s*(.*)$/s.exec(words) ?? []
    return uri === undefined
      ? undefined
      : { type: 'ground', sources: [{ uri, title: title || new URL(uri).hostname }] }
  }),
  pause: text('[[pause 50]]', (ms) =>
    isCount(ms) ? { type: 'pause', ms: Number(ms) } : undefined,
  ),
  pace: text('[[pace 20]]', (ms) => (isCount(ms) ? { type: 'pace', ms: Number(ms) } : undefined)),
  wait: text('[[wait gate]]', (gate) => (/^\S+$/.test(gate) ? { type: 'wait', gate } : undefined)),
  finish: text('[[finish MAX_TOKENS]]', (reason) =>
    isReason(reason) ? { type: 'finish', reason } : undefined,
  ),
  block: text('[[block SAFETY]] or [[block SAFETY no-usage]]', (words) => {
    const [reason = '', ...rest] = words.split(/\s+/)
    if (!isReason(reason) || !['', 'no-usage'].includes(rest.join(' '))) return undefined
    return { type: 'block', reason, ...(rest.length > 0 && { usage: false }) }
  }),
  fail: text('[[fail 503 message]] or [[fail 429 retry=26 message]]', readFail),
  drop: text('[[drop]]', (rest) => (rest ? undefined : { type: 'drop' })),
  close: text('[[close 1011 reason]]', (words) => {
    const [, code, reason = ''] = /^(\d{4})(?:\s+(.*))?$/s.exec(words) ?? []
    return code === undefined ? undefined : { type: 'close', code: Number(code), reason }
  }),
  'go-away': text('[[go-away 100]]', (ms) =>
    isCount(ms) ? { type: 'go-away', timeLeftMs: Number(ms) } : undefined,
  ),
  cancel: text('[[cancel]]', (rest) => (rest ? undefined : { type: 'cancel' })),
  raw: {
    form: '[[raw {"candidates": []}]]',
    takes: 'json',
    read: ({ json }) => ({ type: 'raw', message: json }),
  },
}

function text(form: string, read: (argument: string) => Action | undefined): Directive {
  return { form, takes: 'text', read: (argument) => read(argument.text) }
}

function call(form: string, separate: boolean): Directive {
  return {
    form,
    takes: 'named-json',
    read({ text: name, json = {} }) {
      if (!isObject(json)) return undefined
      return { type: 'call', name, args: json, ...(separate && { separate }) }
    },
  }
}

function readCode(words: string): Action | undefined {
  if (!words) return undefined
  const arrow = words.lastIndexOf(' => ')
  const code = arrow < 0 ? words : words.slice(0, arrow)
  const output = arrow < 0 ? '' : words.slice(arrow + 4)
  return { type: 'code', language: 'PYTHON', code, outcome: 'OUTCOME_OK', output }
}

function readFail(words: string): Action | undefined {
  const [, status, retry, message = ''] =
    /^([45]\d\d)(?:\s+retry=(\d+(?:\.\d+)?))?(?:\s+(.*))?$/s.exec(words) ?? []
  if (status === undefined) return undefined
  const retryAfterSeconds = retry === undefined ? {} : { retryAfterSeconds: Number(retry) }
  return { type: 'fail', status: Number(status), message, ...retryAfterSeconds }
}

function isCount(words: string): boolean {
  return /^\d+$/.test(words)
}

function isReason(words: string): boolean {
  return /^[A-Z][A-Z0-9_]*$/.test(words)
}
