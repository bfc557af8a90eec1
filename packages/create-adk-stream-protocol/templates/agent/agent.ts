import { FunctionTool, LlmAgent } from '@google/adk'
import { z } from 'zod'

const getTime = new FunctionTool({
  name: 'get_time',
  description: 'Returns the time in a time zone.',
  parameters: z.object({ timeZone: z.string() }),
  execute: ({ timeZone }) => ({ time: new Date().toLocaleTimeString('en', { timeZone }) }),
})

const processPayment = new FunctionTool({
  name: 'process_payment',
  description: 'Sends money to a person.',
  parameters: z.object({ amount: z.number().positive(), recipient: z.string() }),
  requireConfirmation: true,
  execute: ({ amount, recipient }) => ({ success: true, amount, recipient }),
})

export const agent = new LlmAgent({
  name: 'assistant',
  model: 'gemini-2.5-flash',
  instruction: 'Help the user. Use your tools where they fit.',
  tools: [getTime, processPayment],
})
