import type { Language } from '../languages.ts'
import { ACCOUNTS, NAMES } from './sample-events.ts'

/** Returns the page on which a person chooses an account of the demo's calendar. It has no scripts. */
export function renderSignIn(language: Language): string {
  const { title, what, access, as, cancel } = TEXTS[language]
  const buttons = ACCOUNTS.map(
    (account) =>
      `<button name="account" value="${account}">${as(NAMES[account][language])}<small>${account}@example.com</small></button>`,
  )
  return `<!doctype html><html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>${title}</title><link rel="stylesheet" href="/sign-in.css"></head><body><main><h1>${title}</h1><p>${what}</p><p>${access}</p><form method="post">${buttons.join('')}<button name="account" value="" class="quiet">${cancel}</button></form></main></body></html>`
}

const TEXTS = {
  en: {
    title: 'Demo Calendar',
    what: 'This page belongs to the demo. It stands for the sign-in page of a service such as Google: there is no password, and nothing leaves this machine.',
    access: 'The assistant asks to read your calendar.',
    as: (name: string) => `Sign in as ${name}`,
    cancel: 'Cancel',
  },
  ja: {
    title: 'Demo Calendar',
    what: 'これはデモのページで、Googleなどのサービスのサインイン画面の代わりです。パスワードはなく、このコンピューターの外には何も送信されません。',
    access: 'アシスタントがカレンダーの閲覧を求めています。',
    as: (name: string) => `${name}としてサインイン`,
    cancel: 'キャンセル',
  },
} as const satisfies Record<Language, unknown>
