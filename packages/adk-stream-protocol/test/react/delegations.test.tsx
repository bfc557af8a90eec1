import { render, screen, within } from '@testing-library/react'
import { userEvent } from '@testing-library/user-event'
import { expect, test } from 'vitest'

import type { DelegationLists, ShownDelegation } from '../../src/protocol/delegations.ts'
import type { PendingApproval } from '../../src/protocol/server-views.ts'
import { AdkProvider, Delegations, ja } from '../../src/react/index.ts'

const WAITING: PendingApproval = {
  id: 'approval-1',
  state: 'requested',
  toolName: 'process_payment',
  args: { amount: 50 },
  requestedAt: 0,
  deadline: 8.64e15,
  approvals: { given: 0, needed: 1 },
  voted: false,
  step: 0,
  own: false,
  mayDecide: true,
}

const RECEIVED: ShownDelegation = {
  id: 'delegation-1',
  from: { id: 'mari', name: 'Mari' },
  to: { id: 'taro' },
  at: 0,
  expiresAt: 8.64e15,
}

/** The delegations of a person in memory, with the methods of the API. */
function createApi() {
  let lists: DelegationLists = { given: [], received: [RECEIVED] }
  const decided: unknown[] = []
  return {
    decided,
    api: {
      listDelegations: async () => lists,
      delegate: async (to: string, forMs: number) => {
        if (to === 'nobody') throw new Error('refused')
        const given = { id: 'delegation-2', from: { id: 'taro' }, to: { id: to }, at: 0, forMs }
        lists = { ...lists, given: [given] }
        return given
      },
      endDelegation: async (id: string) => {
        const others = (all: readonly ShownDelegation[]) => all.filter((each) => each.id !== id)
        lists = { given: others(lists.given), received: others(lists.received) }
      },
      listDelegated: async () => (decided.length > 0 ? [] : [WAITING]),
      decideDelegated: async (...decision: unknown[]) => {
        decided.push(decision)
        return 'approved'
      },
      watch: () => () => undefined,
    },
  }
}

test('[DG1656] a person names somebody by keyboard, and ends it', async () => {
  const user = userEvent.setup()
  const { api } = createApi()
  render(
    <AdkProvider>
      <Delegations api={api} />
    </AdkProvider>,
  )
  const part = await screen.findByRole('region', { name: 'While you are away' })
  const name = async (id: string): Promise<void> => {
    await user.type(within(part).getByLabelText('Who decides in your place'), `${id}{Enter}`)
  }
  await name('nobody')
  await within(part).findByText('The server did not accept this.')
  await user.clear(within(part).getByLabelText('Who decides in your place'))
  await name('hanako')
  await within(part).findByText(/hanako decides in your place/)
  within(part).getByRole('button', { name: 'End the delegation: hanako' }).focus()
  await user.keyboard('{Enter}')
  await expect.poll(() => within(part).queryByText(/hanako decides/)).toBe(null)
})

test('[DG1656] a delegate decides beside the inbox what waits for the other person', async () => {
  const user = userEvent.setup()
  const { api, decided } = createApi()
  render(
    <AdkProvider labels={ja}>
      <Delegations api={api} />
    </AdkProvider>,
  )
  await screen.findByText(/Mari の代わりに判断できます/)
  await user.click(await screen.findByRole('button', { name: /承認/ }))
  await expect
    .poll(() => decided)
    .toEqual([['delegation-1', 'approval-1', expect.objectContaining({ approved: true })]])
})
