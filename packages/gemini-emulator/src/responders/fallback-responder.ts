import type { Part } from '../wire/content.ts'
import type { Responder } from './responder.ts'

/** Replies to every prompt: repeats its last message and explains how to script a reply. */
export const fallbackResponder: Responder = ({ contents }) => {
  const received = (contents.at(-1)?.parts ?? []).map(describePart).join(' ').trim()
  const shown = received.length > MAX_LENGTH ? `${received.slice(0, MAX_LENGTH)}…` : received
  return [{ type: 'say', text: `The emulator received: ${shown}\n${HINT}` }]
}

function describePart({ text, functionResponse, inlineData, fileData }: Part): string {
  if (text !== undefined) return text
  if (functionResponse) {
    return `${functionResponse.name} -> ${JSON.stringify(functionResponse.response)}`
  }
  return inlineData?.mimeType ?? fileData?.mimeType ?? '(no text)'
}

const MAX_LENGTH = 200
const HINT = 'To script the reply, send [[say Hello.]] or load a scenario.'
