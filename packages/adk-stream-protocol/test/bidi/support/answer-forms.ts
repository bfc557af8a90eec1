import type { BidiClient } from './bidi-client.ts'

interface Asked {
  readonly approvalId: string
  readonly toolCallId: string
}

export interface AnswerForm {
  readonly name: string
  readonly answer: (client: BidiClient, asked: Asked | undefined, given: Given) => void
}

interface Given {
  readonly approved: boolean
  readonly reason?: string
}

const CONFIRMATION = 'adk_request_confirmation'
const PAYMENT = 'process_payment'

/** Every form in which the clients of the earlier system send a decision. */
export const FORMS: readonly AnswerForm[] = [
  {
    name: 'form 1, the part of an assistant message',
    answer: (client, asked, { approved, reason }) => {
      const { approvalId: id, toolCallId } = known(asked)
      const approval = { id, approved, ...(reason !== undefined && { reason }) }
      const part = { type: `tool-${PAYMENT}`, toolCallId, state: 'approval-responded', approval }
      client.send({ type: 'message', messages: [{ id: 'm', role: 'assistant', parts: [part] }] })
    },
  },
  {
    name: 'form 1, the confirmation in a message of the person',
    answer: (client, asked, { approved, reason }) => {
      const approval = {
        id: known(asked).approvalId,
        approved,
        ...(reason !== undefined && { reason }),
      }
      const part = { type: `tool-${CONFIRMATION}`, state: 'approval-responded', approval }
      client.send({ type: 'message', messages: [{ role: 'user', parts: [part] }] })
    },
  },
  {
    name: 'form 2, the output of the confirmation',
    answer: (client, asked, { approved: confirmed, reason }) => {
      const result = { confirmed, ...(reason !== undefined && { reason }) }
      const { approvalId: toolCallId } = known(asked)
      const part = { type: 'tool-result', toolCallId, toolName: CONFIRMATION, result }
      const data = { messages: [{ role: 'user', content: [part] }] }
      client.send({ type: 'message', version: '1.0', data })
    },
  },
  {
    name: 'form 3, a result of the original tool',
    answer: (client, asked, { approved, reason }) => {
      const result = { approved, ...(reason !== undefined && { user_message: reason }) }
      const { toolCallId } = known(asked)
      const part = { type: 'tool-result', toolCallId, toolName: PAYMENT, result }
      const message = { id: 'fr-1', role: 'user', content: [part] }
      client.send({ type: 'message', version: '1.0', messages: [message] })
    },
  },
  {
    name: 'form 4, the event, flat',
    answer: (client, asked, { approved: confirmed, reason }) => {
      const result = { confirmed, ...(reason !== undefined && { reason }) }
      client.send({ type: 'tool_result', toolCallId: known(asked).approvalId, result })
    },
  },
  {
    name: 'form 4, the event, nested',
    answer: (client, asked, { approved: confirmed, reason }) =>
      client.confirm(known(asked).approvalId, confirmed, reason),
  },
]

function known(asked: Asked | undefined): Asked {
  if (!asked) throw new Error('Nothing was asked.')
  return asked
}
