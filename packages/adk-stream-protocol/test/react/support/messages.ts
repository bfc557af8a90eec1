import type { AdkUIMessage } from '../../../src/client/index.ts'
import type { DataParts } from '../../../src/protocol/message.ts'

type Part = AdkUIMessage['parts'][number]
type Call = Extract<Part, { toolCallId: string }>

const ARGUMENTS = { amount: 50, recipient: '花子', urgent: false, lines: [{ sku: 'A1', count: 2 }] }

/** A call of the payment tool in a state. */
export function payment(state: Partial<Call> = {}): Call {
  // The test passes fields that match the state.
  return {
    type: 'tool-process_payment',
    toolCallId: 'call-1',
    input: ARGUMENTS,
    state: 'approval-requested',
    approval: { id: 'approval-1' },
    ...state,
  } as Call
}

/** The data part of its approval. */
export function approvalPart(data: Partial<DataParts['approval']> = {}): Part {
  return {
    type: 'data-approval',
    id: 'approval-1',
    data: {
      approvalId: 'approval-1',
      toolCallId: 'call-1',
      state: 'requested',
      title: 'Payment',
      hint: 'Money leaves the account.',
      severity: 'medium',
      deadline: Date.now() + 90_000,
      ...data,
    },
  }
}

export function answer(...parts: Part[]): AdkUIMessage {
  return { id: 'answer-1', role: 'assistant', parts }
}
