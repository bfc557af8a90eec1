import type { Mind } from '../mind.ts'

/** Replies to any prompt: repeats the text or the results it ends with, and says how to script a reply. */
export const fallbackMind: Mind = ({ contents }) => {
  const parts = contents.at(-1)?.parts ?? []
  const received = parts.map((part) => {
    if (part.text !== undefined) return part.text
    if (part.functionResponse) {
      return `${part.functionResponse.name} -> ${JSON.stringify(part.functionResponse.response)}`
    }
    return part.inlineData?.mimeType ?? part.fileData?.mimeType ?? 'a part without text'
  })
  const text = received.join(' ').trim()
  const shown = text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text
  return [{ type: 'say', text: `The emulator received: ${shown}\n${HINT}` }]
}

const LONGEST_TEXT = 200
const HINT = 'To script the reply, send [[say Hello.]] or load a scenario.'
