import type { Language } from './demo-info.ts'

/** The currencies that Japanese texts name after the number. */
const JAPANESE_NAMES: Readonly<Record<string, string>> = {
  USD: 'ドル',
  JPY: '円',
  EUR: 'ユーロ',
  GBP: 'ポンド',
}

/** Writes an amount as people say it: `$50.00`, or `50.00ドル` in Japanese. Shows every digit, because a person may approve it. */
export function formatMoney(amount: number, currency: string, language: Language): string {
  const locale = language === 'ja' ? 'ja-JP' : 'en-US'
  const options = { style: 'currency', currency, maximumFractionDigits: 20 } as const
  try {
    const format = new Intl.NumberFormat(locale, options)
    const name = language === 'ja' ? JAPANESE_NAMES[currency] : undefined
    if (name === undefined) return format.format(amount)
    const { minimumFractionDigits } = format.resolvedOptions()
    const digits = { minimumFractionDigits, maximumFractionDigits: 20 }
    return `${new Intl.NumberFormat(locale, digits).format(amount)}${name}`
  } catch {
    // The model may invent a currency code.
    return `${amount} ${currency}`
  }
}
