import { tool } from 'ai'

import { ChangeBgm, GetLocation } from '../agent/tools/browser-tools.ts'
import { WeatherRequest } from '../agent/tools/get-weather.ts'
import { pay, PaymentRequest, refuse } from '../agent/tools/process-payment.ts'
import type { Wallets } from '../agent/wallet/wallets.ts'
import type { Weather } from '../agent/weather/weather.ts'
import { formatMoney } from '../format-money.ts'
import { ONE_PERSON_UP_TO } from './approval-policy.ts'

export interface DirectToolsOptions {
  readonly weather: Weather
  readonly wallets: Wallets
  /** The owner of the wallet. */
  readonly userId: string
}

/** The agent's tools as AI SDK tools, with the AI SDK's approvals. */
export function createDirectTools({ weather, wallets, userId }: DirectToolsOptions) {
  return {
    get_weather: tool({
      description: WeatherRequest.description ?? '',
      inputSchema: WeatherRequest,
      execute: ({ location }, { abortSignal }) => weather(location, abortSignal),
    }),
    process_payment: tool({
      description: PaymentRequest.description ?? '',
      inputSchema: PaymentRequest,
      needsApproval: true,
      execute: async (request, { toolCallId }) => {
        // DM40: this needs a second approver, which the AI SDK does not support.
        if (request.amount > ONE_PERSON_UP_TO) return refuse(NEEDS_TWO)
        // A signed approval may be sent again, also from another chat. The key makes the call pay once.
        return pay(wallets, request, { userId, key: `direct/${toolCallId}` })
      },
    }),
    // Without `execute`, the page returns the result.
    get_location: tool({
      description: GetLocation.description,
      needsApproval: true,
      inputSchema: GetLocation.parameters,
      outputSchema: GetLocation.output,
    }),
    change_bgm: tool({
      description: ChangeBgm.description,
      inputSchema: ChangeBgm.parameters,
      outputSchema: ChangeBgm.output,
    }),
  }
}

const NEEDS_TWO = `Direct mode cannot ask a second approver, so it cannot send more than ${formatMoney(ONE_PERSON_UP_TO, 'USD', 'en')}.`
