import { EmulatorError } from '../emulator-error.ts'
import type { Content } from '../wire/content.ts'
import type { Argument, Directive } from './directives.ts'
import { DIRECTIVES } from './directives.ts'
import type { Action, Responder } from './responder.ts'

/**
 * Runs the script in the user's text: `[[say Hello]] [[call tool {"json": 1}]] [[then]] [[say Done]]`. After the last step
 * it reports the results of the calls. Returns `undefined` for a text without directives.
 */
export const scriptResponder: Responder = ({ contents }) => {
  const running = findScript(contents)
  if (!running) return undefined
  return running.script[running.step] ?? reportResults(contents.at(-1))
}

interface RunningScript {
  readonly script: Script
  readonly step: number
}

/** Finds the script of the current turn. Its step is the number of tool results since. A partial response is not a result. */
function findScript(contents: readonly Content[]): RunningScript | undefined {
  let step = 0
  for (const content of contents.toReversed()) {
    if (content.role === 'model') continue
    const responses = (content.parts ?? []).filter((part) => part.functionResponse)
    if (responses.length > 0) {
      if (responses.some((part) => !part.functionResponse?.willContinue)) step += 1
      continue
    }
    const text = (content.parts ?? []).map((part) => part.text ?? '').join('')
    if (text.startsWith(ADK_CONTEXT)) {
      if (ADK_RESULT.test(text)) step += 1
      continue
    }
    const script = parseScript(text)
    return script && { script, step }
  }
  return undefined
}

function reportResults(last: Content | undefined): readonly Action[] | undefined {
  const results = (last?.parts ?? []).flatMap(({ functionResponse }) =>
    functionResponse
      ? [`${functionResponse.name} -> ${JSON.stringify(functionResponse.response)}`]
      : [],
  )
  return results.length > 0 ? [{ type: 'say', text: results.join('; ') }] : undefined
}

// ADK passes the text and calls of another agent in the user role under this heading. The user did not write them.
export const ADK_CONTEXT = 'For context:'
const ADK_RESULT = /tool `[^`]+` returned result:/

/** The actions of each step. A step starts when the calls of the previous one have their results. */
type Script = readonly (readonly Action[])[]

/** Reads the directives in a text and ignores the text between them. Returns `undefined` if there are none. */
export function parseScript(text: string): Script | undefined {
  const opening = /\[\[(?=[a-z])/g
  const steps: Action[][] = [[]]
  let found = false
  for (let match = opening.exec(text); match; match = opening.exec(text)) {
    found = true
    const { action, end } = readDirective(text, match.index)
    if (action) steps.at(-1)?.push(action)
    else steps.push([])
    opening.lastIndex = end
  }
  return found ? steps : undefined
}

interface Read {
  /** `undefined` for `[[then]]`. */
  readonly action?: Action
  /** The position after the directive. */
  readonly end: number
}

function readDirective(text: string, start: number): Read {
  const name = /^[a-z-]+(?=\s|\]\])/.exec(text.slice(start + 2, start + 40))?.[0] ?? ''
  const after = start + 2 + name.length
  if (name === 'then') {
    return { end: skipClosing(text, { at: after, start, form: '[[then]]' }) }
  }
  const directive = Object.hasOwn(DIRECTIVES, name) ? DIRECTIVES[name] : undefined
  if (!directive) {
    const known = [...Object.keys(DIRECTIVES), 'then'].join(', ')
    throw badScript(text, start, `unknown directive; use one of ${known}`)
  }
  const { argument, end } =
    directive.takes === 'text'
      ? readText(text, { at: after, start, form: directive.form })
      : readJson(text, { at: after, start, form: directive.form }, directive)
  const action = directive.read(argument)
  if (!action) throw badScript(text, start, `write ${directive.form}`)
  return { action, end }
}

interface Place {
  readonly at: number
  /** The start of the directive. */
  readonly start: number
  readonly form: string
}

interface ReadArgument {
  readonly argument: Argument
  readonly end: number
}

function readText(text: string, { at, start, form }: Place): ReadArgument {
  // The last two of several brackets close the directive, so that [[say [sic]]] says [sic].
  const close = /\]\](?!\])/g
  close.lastIndex = at
  const match = close.exec(text)
  if (!match) throw badScript(text, start, `it is not closed; write ${form}`)
  return { argument: { text: text.slice(at, match.index).trim() }, end: close.lastIndex }
}

function readJson(text: string, place: Place, { takes, form }: Directive): ReadArgument {
  let at = skipSpace(text, place.at)
  const name = takes === 'named-json' ? (/^[^\s\]{[]+/.exec(text.slice(at))?.[0] ?? '') : ''
  if (takes === 'named-json' && !name) {
    throw badScript(text, at, `the name is missing; write ${form}`)
  }
  at = skipSpace(text, at + name.length)
  if (text.startsWith(']]', at) && name) return { argument: { text: name }, end: at + 2 }
  const jsonEnd = findJsonEnd(text, at)
  if (jsonEnd === undefined) throw badScript(text, at, `the JSON is not closed; write ${form}`)
  const json = parseJson(text, { ...place, at }, jsonEnd)
  return {
    argument: { text: name, json },
    end: skipClosing(text, { ...place, at: skipSpace(text, jsonEnd) }),
  }
}

/** Finds the end of an object or array by its own brackets, because it may contain `]]`. */
function findJsonEnd(text: string, start: number): number | undefined {
  const closers: string[] = []
  const token = /"(?:[^"\\]|\\.)*"|[{}[\]]/gs
  token.lastIndex = start
  for (let match = token.exec(text); match; match = token.exec(text)) {
    if (match[0] === '{') closers.push('}')
    else if (match[0] === '[') closers.push(']')
    else if (!match[0].startsWith('"') && match[0] !== closers.pop()) return undefined
    if (closers.length === 0) return token.lastIndex
  }
  return undefined
}

function parseJson(text: string, { at, form }: Place, end: number): unknown {
  try {
    return JSON.parse(text.slice(at, end))
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw badScript(text, at, `invalid JSON (${reason}); write ${form}`)
  }
}

function skipSpace(text: string, at: number): number {
  return at + (/^\s*/.exec(text.slice(at))?.[0].length ?? 0)
}

function skipClosing(text: string, { at, start, form }: Place): number {
  if (text.startsWith(']]', at)) return at + 2
  throw badScript(text, start, `it is not closed; write ${form}`)
}

function badScript(text: string, at: number, fault: string): EmulatorError {
  const before = text.slice(0, at).split('\n')
  const column = before.at(-1)?.length ?? 0
  const line = text.split('\n')[before.length - 1] ?? ''
  // Shows a long line from shortly before the position.
  const from = Math.max(0, column - 20)
  return new EmulatorError(
    'bad-script',
    `gemini-emulator: invalid script at line ${before.length}, column ${column + 1}: ${fault}\n${line.slice(from, from + 80)}\n${' '.repeat(column - from)}^`,
  )
}
