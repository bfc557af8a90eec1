import { Cents } from '../../src/agent/wallet/wallets.ts'
import { openSqliteWallets } from '../../src/agent/wallet/sqlite-wallets.ts'

// Runs as a child process: `spend <database> <name>` makes 40 payments and prints how many succeeded.

const [path = '', name = ''] = process.argv.slice(2)
const wallets = openSqliteWallets(path)
let paid = 0
for (let index = 0; index < 40; index += 1) {
  const payment = { key: `${name}${index}`, amount: Cents.parse(1000), recipient: 'Alice' }
  if (wallets.pay('hanako', payment).state === 'paid') paid += 1
}
process.stdout.write(String(paid))
