/** The languages of the demo. */
type Language = 'en' | 'ja'

/** Writes an amount as people say it: `$50.00`, or `50.00ドル` in Japanese. Shows every digit, because a person may approve it. */
export function formatMoney(amount: number, currency: string, language: Language): string {
  try {
    const digits = { minimumFractionDigits: 2, maximumFractionDigits: 20 }
    if (language === 'ja' && currency === 'USD')
      return `${new Intl.NumberFormat('ja-JP', digits).format(amount)}ドル`
    return new Intl.NumberFormat(language === 'ja' ? 'ja-JP' : 'en-US', {
      style: 'currency',
      currency,
      maximumFractionDigits: 20,
    }).format(amount)
  } catch {
    // The model may invent a currency code.
    return `${amount} ${currency}`
  }
}
