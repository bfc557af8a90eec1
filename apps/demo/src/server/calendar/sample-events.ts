import type { Language } from '../languages.ts'

/** The accounts of the demo's calendar. */
export const ACCOUNTS = ['hana', 'ben'] as const
export type Account = (typeof ACCOUNTS)[number]

export const NAMES = {
  hana: { en: 'Hana', ja: '花' },
  ben: { en: 'Ben', ja: 'ベン' },
} as const satisfies Record<Account, Record<Language, string>>

export function isAccount(value: unknown): value is Account {
  return ACCOUNTS.some((account) => account === value)
}

/** Returns the sample events of an account for today. */
export function listEvents(account: Account, language: Language) {
  return {
    owner: NAMES[account][language],
    events: EVENTS[account].map(([time, en, ja]) => ({ time, title: language === 'ja' ? ja : en })),
    note:
      language === 'ja'
        ? 'デモのカレンダーの見本です。'
        : 'These are sample events of the demo’s own calendar.',
  }
}

const EVENTS = {
  hana: [
    ['09:30', 'Team meeting', 'チームの会議'],
    ['12:00', 'Lunch with Alice', 'アリスさんと昼食'],
    ['16:00', 'Dentist', '歯医者'],
  ],
  ben: [
    ['10:00', 'Interview', '面接'],
    ['19:00', 'Choir rehearsal', '合唱の練習'],
  ],
} as const satisfies Record<Account, readonly (readonly [string, string, string])[]>
