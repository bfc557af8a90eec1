import type { Act, Mind } from '../../mind.ts'
import type { Content } from '../../wire/content.ts'
import { parseScript, type Script } from './parse-script.ts'

/**
 * Does what the user's text says: `[[say Hello]] [[call tool {"json": 1}]] [[then]] [[say Done]]`. It passes on a text
 * without directives, and reports the results of calls once the script has nothing more to say.
 */
export const scriptMind: Mind = ({ contents }) => {
  const running = findScript(contents)
  if (!running) return undefined
  return running.script[running.step] ?? reportResults(contents.at(-1))
}

interface Running {
  readonly script: Script
  readonly step: number
}

/** The script of the current turn, and how often its calls have been answered. */
function findScript(contents: readonly Content[]): Running | undefined {
  let step = 0
  for (const content of contents.toReversed()) {
    if (content.role === 'model') continue
    if (content.parts?.some((part) => part.functionResponse)) {
      step += 1
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

function reportResults(last: Content | undefined): readonly Act[] | undefined {
  const results = (last?.parts ?? []).flatMap(({ functionResponse }) =>
    functionResponse
      ? [`${functionResponse.name} -> ${JSON.stringify(functionResponse.response)}`]
      : [],
  )
  return results.length > 0 ? [{ type: 'say', text: results.join('; ') }] : undefined
}

// ADK tells an agent what another agent said and called in the user's role, under this heading; it is not the user's word.
const ADK_CONTEXT = 'For context:'
const ADK_RESULT = /tool `[^`]+` returned result:/
