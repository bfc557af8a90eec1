import { AgentTool, type BaseLlm, LlmAgent } from '@google/adk'

import { createProcessPayment } from './tools/process-payment.ts'
import type { Wallets } from './wallet/wallets.ts'

/** An agent that is used as a tool. Its payments need approval as those of the assistant do. */
export function createAccountant(model: BaseLlm, wallets: Wallets): AgentTool {
  return new AgentTool({
    agent: new LlmAgent({
      name: 'accountant',
      description: 'An accountant who sends money for the assistant. Give it the whole request.',
      model,
      instruction:
        'You are an accountant. Make the payments of the request with process_payment: they are approved before they run, so do not ask for permission. Then report in one sentence, in the language of the request.',
      tools: [createProcessPayment(wallets)],
    }),
  })
}
