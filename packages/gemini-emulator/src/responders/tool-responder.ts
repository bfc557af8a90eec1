import type { Content, FunctionDeclaration } from '../wire/content.ts'
import { fillArguments } from './fill-arguments.ts'
import type { Action, Responder } from './responder.ts'
import { ADK_CONTEXT } from './script-responder.ts'

/**
 * Replies to every prompt for any agent, so that its tools and approvals can be tried without a model: says that it is not a model, and
 * calls the function with the most words of the user's message in its name or description. The arguments come from the message and the
 * schema. Then it repeats the result.
 */
export const toolResponder: Responder = ({ contents, functions, callMode }) => {
  const results = (contents.at(-1)?.parts ?? []).flatMap(({ functionResponse }) =>
    functionResponse
      ? [`${functionResponse.name} -> ${JSON.stringify(functionResponse.response)}`]
      : [],
  )
  if (results.length > 0) return [say(`${NOT_A_MODEL} The result: ${results.join('; ')}`)]
  const message = findUserText(contents)
  const callable = callMode === 'NONE' ? [] : functions.filter(({ name }) => !isAdkTool(name))
  const chosen = findFunction(callable, message) ?? (callMode === 'ANY' ? functions[0] : undefined)
  if (!chosen) return [say(describeFunctions(callable, message))]
  return [
    say(`${NOT_A_MODEL} Your message has words of ${chosen.name}, so it calls this tool.`),
    { type: 'call', name: chosen.name, args: fillArguments(chosen, message) },
  ]
}

const NOT_A_MODEL = 'This is the emulator, not a model.'

function say(text: string): Action {
  return { type: 'say', text }
}

/** ADK's own functions have words that messages use by chance, such as "agent". */
function isAdkTool(name: string): boolean {
  return ['transfer_to_agent', 'set_model_response', 'finish_task'].includes(name)
}

function describeFunctions(functions: readonly FunctionDeclaration[], message: string): string {
  const [first] = functions
  if (!first) return `${NOT_A_MODEL} It received: ${message}`
  const names = functions.map(({ name }) => name).join(', ')
  const example = `[[call ${first.name} ${JSON.stringify(fillArguments(first, ''))}]]`
  return `${NOT_A_MODEL} It calls a tool if your message has words of its name or description: ${names}. To call one with other arguments, send ${example}`
}

function findUserText(contents: readonly Content[]): string {
  for (const { role, parts = [] } of contents.toReversed()) {
    const text = parts.map((part) => part.text ?? '').join(' ')
    if (role !== 'model' && text.trim() !== '' && !text.startsWith(ADK_CONTEXT)) return text.trim()
  }
  return ''
}

/** Returns the function with the highest number of words in common with a message, the first one of several. */
function findFunction(
  functions: readonly FunctionDeclaration[],
  message: string,
): FunctionDeclaration | undefined {
  const said = listWords(message)
  let best: { readonly found: FunctionDeclaration; readonly score: number } | undefined
  for (const found of functions) {
    const score =
      NAME_WEIGHT * countCommon(said, listWords(found.name)) +
      countCommon(said, listWords(found.description ?? ''))
    if (score > (best?.score ?? 0)) best = { found, score }
  }
  return best?.found
}

/** A word of the name says more than one of the description. */
const NAME_WEIGHT = 3

function countCommon(said: readonly string[], own: readonly string[]): number {
  return said.filter((word) => own.some((other) => isSimilar(word, other))).length
}

/** Whether one word starts with the other one: `pay` and `payment`. */
function isSimilar(one: string, other: string): boolean {
  if (one === other) return true
  const [short = '', long = ''] = [one, other].toSorted((a, b) => a.length - b.length)
  return short.length >= 3 && long.startsWith(short)
}

/** Finds words also in Japanese, which has no spaces. */
const segmenter = new Intl.Segmenter('ja', { granularity: 'word' })

function listWords(text: string): string[] {
  const spaced = text.replaceAll(/[_-]+/g, ' ').replaceAll(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
  const words = Array.from(segmenter.segment(spaced.toLowerCase()), ({ segment, isWordLike }) =>
    isWordLike === true && isTelling(segment) ? [segment] : [],
  )
  return [...new Set(words.flat())]
}

/** Whether a word says what a text is about. Particles of Japanese are single kana. */
function isTelling(word: string): boolean {
  if (/^[\p{Script=Hiragana}]{1,2}$/u.test(word)) return false
  return !/^[a-z]{1,2}$/.test(word) && !COMMON.has(word)
}

const COMMON = new Set(
  'all and any are but can for from get has have him his how into its not now one our out she that the them then they this tool use was what when where which who will with would you your please'.split(
    ' ',
  ),
)
