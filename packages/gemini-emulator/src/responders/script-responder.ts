import type { Content } from '../wire/content.ts'
import { parseScript, type Script } from './parse-script.ts'
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
const ADK_CONTEXT = 'For context:'
const ADK_RESULT = /tool `[^`]+` returned result:/
