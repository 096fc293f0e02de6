<?php
// A page that uses Debian's extensions of PHP, and is the same each time.
$rows = [];
for ($n = 0; $n < 200; $n++)
    $rows[] = ['id' => $n, 'name' => "name $n", 'price' => intdiv($n * 997, 7)];
$rows = json_decode(json_encode($rows), true);
usort($rows, fn($a, $b) => $b['price'] <=> $a['price']);

$document = new DOMDocument();
$list = $document->appendChild($document->createElement('list'));
foreach ($rows as $row)
    $list->appendChild($document->createElement('row', mb_strtoupper($row['name'])))
        ->setAttribute('price', $row['price']);
$copy = simplexml_load_string($document->saveXML());
$names = $copy->xpath('/list/row[@price > 100]');

$image = imagecreatetruecolor(200, 100);
imagefilledellipse($image, 100, 50, 150, 80, 0xff8800);
ob_start();
imagepng($image);
$picture = ob_get_clean();

$database = new SQLite3(':memory:');
$database->exec('create table goods (id integer, name text)');
foreach ($rows as $row)
    $database->exec("insert into goods values ($row[id], '$row[name]')");
$sum = $database->querySingle('select sum(id * length(name)) from goods');

$money = (new NumberFormatter('de_DE', NumberFormatter::DECIMAL))->format(1234567.5);
$large = bcpow('3', '400');
$address = curl_escape(curl_init(), 'a b/c');
$envelope = new SoapVar(['a' => 1], SOAP_ENC_OBJECT);
$packed = gzuncompress(gzcompress(serialize($rows)));

echo count($names), ' rows, picture ', md5($picture), ", sum $sum, $money, ", md5($large), ", $address, ",
    get_class($envelope), ', ', md5($packed), "\n";
