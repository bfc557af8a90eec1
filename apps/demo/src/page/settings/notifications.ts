import { StoredChoice, useChoice } from './stored-choice.ts'

const VALUES = ['off', 'on'] as const
export type Notifications = (typeof VALUES)[number]

const notifications = new StoredChoice<Notifications>({
  key: 'notifications',
  values: VALUES,
  fallback: 'off',
})

/** Whether a hidden page shows browser notifications. */
export function useNotifications() {
  return useChoice(notifications)
}
